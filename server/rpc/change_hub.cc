#include "server/rpc/change_hub.h"

#include <chrono>
#include <utility>

namespace mendel::server {
namespace {

constexpr int64_t kTickMicros = 100'000;
constexpr int64_t kPokeMicros = 1'000'000;
/// The pause between pokes. Each poke makes all waiters read the store, so they are limited to
/// twenty a second.
constexpr auto kRest = std::chrono::milliseconds(50);

}  // namespace

ChangeHub::ChangeHub(JobStore& jobs, const Clock& clock)
    : jobs_(jobs), clock_(clock), thread_([this] { Run(); }) {}

ChangeHub::~ChangeHub() {
  stopping_ = true;
  thread_.join();
}

void ChangeHub::Add(uint64_t id, std::function<void()> poke, int64_t due_micros) {
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_[id] = {std::move(poke), due_micros};
}

void ChangeHub::Remove(uint64_t id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_.erase(id);
}

void ChangeHub::PokeAll() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [id, entry] : entries_) entry.poke();
}

int64_t ChangeHub::size() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int64_t>(entries_.size());
}

void ChangeHub::Poke(bool all, int64_t now_micros) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [id, entry] : entries_) {
    const bool due = entry.due_micros != 0 && entry.due_micros <= now_micros;
    if (due) entry.due_micros = 0;
    if (all || due) entry.poke();
  }
}

void ChangeHub::Run() {
  uint64_t seen = 0;
  int64_t last_poke = clock_.SteadyMicros();
  while (!stopping_) {
    const uint64_t now_seen = jobs_.WaitForChange(seen, kTickMicros);
    const int64_t now = clock_.SteadyMicros();
    const bool all = now_seen != seen || now - last_poke >= kPokeMicros;
    seen = now_seen;
    if (all) last_poke = now;
    Poke(all, now);
    if (all) std::this_thread::sleep_for(kRest);
  }
}

Stepper::Stepper(ChangeHub& hub, ThreadPool& pool, std::function<Next()> step)
    : hub_(hub), pool_(pool), step_(std::move(step)), id_(hub.NewId()) {}

void Stepper::Start(int64_t due_micros) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    busy_ = true;
  }
  hub_.Add(
      id_, [this] { Poke(); }, due_micros);
  pool_.Post([this] { Run(); });
}

void Stepper::Poke() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    poked_ = true;
    if (busy_) return;
    busy_ = true;
  }
  pool_.Post([this] { Run(); });
}

void Stepper::Resume() {
  pool_.Post([this] { Run(); });
}

void Stepper::Close() { hub_.Remove(id_); }

void Stepper::Run() {
  while (true) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      poked_ = false;
    }
    // No member is touched after kBusy or kDone: another thread may own or delete the object.
    if (step_() != Next::kIdle) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!poked_) {
      busy_ = false;
      return;
    }
  }
}

}  // namespace mendel::server
