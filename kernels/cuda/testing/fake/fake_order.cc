#include "kernels/cuda/testing/fake/fake_order.h"

#include <algorithm>

namespace mendel::cuda {
namespace {

void Join(FakeOrder::Clock& clock, const FakeOrder::Clock& other) {
  for (const auto& [stream, step] : other) clock[stream] = std::max(clock[stream], step);
}

bool Knows(const FakeOrder::Clock& clock, const FakeOrder::Clock& accesses) {
  return std::all_of(accesses.begin(), accesses.end(), [&](const auto& access) {
    const auto found = clock.find(access.first);
    return found != clock.end() && found->second >= access.second;
  });
}

}  // namespace

void FakeOrder::AddStream(DriverStream* stream, bool waits_for_default) {
  streams_[stream] = {waits_for_default, {}};
}
void FakeOrder::RemoveStream(DriverStream* stream) { streams_.erase(stream); }

void FakeOrder::Begin(DriverStream* stream) {
  Stream& it = streams_[stream];
  if (stream == nullptr) {
    for (const auto& [handle, other] : streams_) {
      if (other.waits_for_default) Join(it.clock, other.clock);
    }
  } else if (it.waits_for_default) {
    Join(it.clock, streams_[nullptr].clock);
  }
  Join(it.clock, host_);
  it.clock[stream] = ++steps_[stream];
}

void FakeOrder::Record(DriverEvent* event, DriverStream* stream) {
  events_[event] = streams_[stream].clock;
}
void FakeOrder::Wait(DriverStream* stream, DriverEvent* event) {
  if (const auto found = events_.find(event); found != events_.end())
    Join(streams_[stream].clock, found->second);
}
void FakeOrder::HostWaits(DriverStream* stream) { Join(host_, streams_[stream].clock); }
void FakeOrder::HostWaits(DriverEvent* event) {
  if (const auto found = events_.find(event); found != events_.end()) Join(host_, found->second);
}
void FakeOrder::HostWaitsForAll() {
  for (const auto& [handle, stream] : streams_) Join(host_, stream.clock);
}

bool FakeOrder::Access(uint64_t allocation, DriverStream* stream, bool writes) {
  const Clock& now = streams_[stream].clock;
  Accesses& before = accesses_[allocation];
  const bool ordered = Knows(now, before.writes) && (!writes || Knows(now, before.reads));
  (writes ? before.writes : before.reads)[stream] = now.at(stream);
  return ordered;
}

}  // namespace mendel::cuda
