#include "server/jobs/lease_keeper.h"

#include <algorithm>

#include "server/jobs/from_json.h"

namespace mendel::server {
namespace {

constexpr int64_t kLookMicros = 300'000;
constexpr int64_t kReportMicros = 500'000;       // within a phase
constexpr int64_t kReportPhaseMicros = 100'000;  // a new phase
constexpr int kMostWarnings = 100;

bool Lost(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsNotFound(status);
}

}  // namespace

LeaseKeeper::LeaseKeeper(const StoredJob& job, bool stoppable, RunnerContext& context)
    : job_(job),
      stoppable_(stoppable),
      context_(context),
      renewed_(context.clock.SteadyMicros()),
      looked_(renewed_) {}

void LeaseKeeper::Progress(std::string_view line) {
  auto read = ProgressFromJson(line);
  if (!read.ok()) return;
  for (std::string& warning : read->warnings) {
    if (warned_++ < kMostWarnings) warnings_.push_back(std::move(warning));
  }
  if (read->progress.phase().empty()) return;
  // Values that a later phase leaves out stay valid.
  if (read->progress.candidates() == 0) {
    read->progress.set_candidates(progress_.candidates());
    read->progress.set_best_speedup(progress_.best_speedup());
  }
  context_.counters.candidates +=
      std::max<int64_t>(0, read->progress.candidates() - progress_.candidates());
  progress_ = std::move(read->progress);
  news_ = true;
}

Order LeaseKeeper::Decide() {
  const int64_t now = context_.clock.SteadyMicros();
  if (context_.draining) return Order::kKill;
  if (now - renewed_ > context_.options.lease_micros / 3) Renew(now);
  if (now - looked_ > kLookMicros) Look(now);
  ReportWhenDue(now);
  if (lost_) return Order::kKill;
  if (!cancelled_) return Order::kGoOn;
  if (cancelled_at_ == 0) cancelled_at_ = now;
  return stoppable_ && now - cancelled_at_ < context_.options.cancel_grace_micros
             ? Order::kTerminate
             : Order::kKill;
}

void LeaseKeeper::Renew(int64_t now) {
  const auto state = context_.jobs.Renew(
      job_.job.name(), job_.fence, context_.clock.WallMicros() + context_.options.lease_micros);
  if (state.ok()) {
    renewed_ = now;
    cancelled_ = cancelled_ || *state == v1::JOB_STATE_CANCELLING;
  } else if (Lost(state.status()) || now - renewed_ > context_.options.lease_micros) {
    lost_ = true;
  }
}

void LeaseKeeper::Look(int64_t now) {
  looked_ = now;
  const auto stored = context_.jobs.GetJob(job_.job.name());
  if (stored.ok() && stored->fence != job_.fence) lost_ = true;
  if (stored.ok() && stored->job.state() == v1::JOB_STATE_CANCELLING) cancelled_ = true;
}

void LeaseKeeper::ReportWhenDue(int64_t now) {
  if (warnings_.empty() && !news_) return;
  if (now - reported_ < (progress_.phase() == reported_phase_ ? kReportMicros : kReportPhaseMicros))
    return;
  reported_ = now;
  ReportRest();
}

void LeaseKeeper::ReportRest() {
  for (const std::string& warning : warnings_) {
    v1::JobEvent event;
    event.set_warning(warning);
    Append(event);
  }
  warnings_.clear();
  if (!news_) return;
  news_ = false;
  reported_phase_ = progress_.phase();
  v1::JobEvent event;
  *event.mutable_progress() = progress_;
  Append(event);
}

void LeaseKeeper::Append(const v1::JobEvent& event) {
  if (!lost_ && Lost(context_.jobs.AppendEvent(job_.job.name(), job_.fence, event))) lost_ = true;
}

}  // namespace mendel::server
