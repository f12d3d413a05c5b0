// SPDX-License-Identifier: Apache-2.0
#include "tools/top_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tools/numbers.hpp"

namespace espalier::tools {
namespace {

using offload::DurationCounts;

std::uint64_t moved(std::uint64_t before, std::uint64_t now) {
  return now > before ? now - before : 0;
}

DurationCounts moved(const DurationCounts& before, const DurationCounts& now) {
  DurationCounts counts;
  for (std::size_t i = 0; i < counts.buckets.size(); ++i) {
    counts.buckets[i] = moved(before.buckets[i], now.buckets[i]);
  }
  counts.sum_ns = moved(before.sum_ns, now.sum_ns);
  return counts;
}

double total_of(const DurationCounts& counts) {
  double total = 0;
  for (const std::uint64_t count : counts.buckets) total += static_cast<double>(count);
  return total;
}

/// The bound below which `share` of them lie; what is in the last bucket has none, and gets the
/// last there is.
std::uint64_t quantile_ns(const DurationCounts& counts, double total, double share) {
  double below = 0;
  for (std::size_t i = 0; i < DurationCounts::kBounds; ++i) {
    below += static_cast<double>(counts.buckets[i]);
    if (below >= share * total) return DurationCounts::bound_ns(i);
  }
  return DurationCounts::bound_ns(DurationCounts::kBounds - 1);
}

/// Rates over one interval; 0 if its length is 0, or if a value is unknown.
class Pace {
 public:
  explicit Pace(double seconds) : seconds_(seconds) {}
  [[nodiscard]] double operator()(std::uint64_t before, std::uint64_t now) const {
    return seconds_ > 0 ? static_cast<double>(moved(before, now)) / seconds_ : 0;
  }

 private:
  double seconds_;
};

OffloadRates rates_of(const node::OffloadNumbers& before, const node::OffloadNumbers& now,
                      const Pace& pace) {
  OffloadRates rates;
  rates.name = now.name;
  rates.requests = now.requests;
  rates.per_s = pace(before.requests, now.requests);
  const DurationCounts timed = moved(before.durations, now.durations);
  const double total = total_of(timed);
  if (total == 0) return rates;
  rates.mean_ns = static_cast<double>(timed.sum_ns) / total;
  rates.p50_ns = quantile_ns(timed, total, 0.5);
  rates.p99_ns = quantile_ns(timed, total, 0.99);
  return rates;
}

/// A number of an object now, and before; where it was another object, that one began at 0.
class Moving {
 public:
  Moving(const wire::SampledObject* before, const wire::SampledObject& now)
      : before_(before), now_(now) {}
  [[nodiscard]] std::uint64_t before(std::string_view name) const {
    return before_ == nullptr ? 0 : wire::sample_value(*before_, name);
  }
  [[nodiscard]] std::uint64_t now(std::string_view name) const {
    return wire::sample_value(now_, name);
  }

 private:
  const wire::SampledObject* before_;
  const wire::SampledObject& now_;
};

/// The same object in an earlier reading: its id is one object's for ever.
const wire::SampledObject* same_of(const wire::SampledObjects& before,
                                   const wire::SampledObject& now) {
  const auto same = std::ranges::find(before.objects, now.id, &wire::SampledObject::id);
  return same == before.objects.end() ? nullptr : &*same;
}

MapRates map_rates(const wire::SampledObject* before, const wire::SampledObject& now,
                   const Pace& pace) {
  const Moving map(before, now);
  MapRates rates{now.name, now};
  rates.writes_per_s = pace(map.before("write_version"), map.now("write_version"));
  const auto bytes =
      static_cast<double>(map.now("node_bytes")) + static_cast<double>(map.now("value_bytes"));
  const auto items = static_cast<double>(map.now("items"));
  rates.bytes_per_item = items > 0 ? bytes / items : 0;
  rates.unreleased = moved(map.now("read_version"), map.now("write_version"));
  rates.moves_per_s = pace(map.before("feed_entries"), map.now("feed_entries"));
  return rates;
}

TableRates table_rates(const wire::SampledObject* before, const wire::SampledObject& now,
                       const Pace& pace) {
  const Moving table(before, now);
  TableRates rates{now.name, now};
  for (const char* const end : {"queries_ended", "queries_failed", "queries_refused"}) {
    rates.queries_per_s += pace(table.before(end), table.now(end));
  }
  rates.read_bytes_per_s = pace(table.before("read_bytes"), table.now("read_bytes"));
  rates.sent_bytes_per_s = pace(table.before("sent_bytes"), table.now("sent_bytes"));
  return rates;
}

SequencerRates sequencer_rates(const wire::SampledObject* before, const wire::SampledObject& now,
                               const Pace& pace) {
  const Moving sequencer(before, now);
  SequencerRates rates{now.name, now};
  // What lies between two epochs was not given.
  const bool same_epoch = sequencer.before("epoch") == sequencer.now("epoch");
  rates.numbers_per_s =
      pace(same_epoch ? sequencer.before("next") : sequencer.now("first"), sequencer.now("next"));
  rates.requests_per_s = pace(sequencer.before("requests"), sequencer.now("requests"));
  rates.adds_per_s = pace(sequencer.before("adds"), sequencer.now("adds"));
  return rates;
}

// Counters of an object never fall. One that was not read before is new, and its counters began at
// 0, unless it may have been left out.
ObjectRates rates_of(const wire::SampledObjects& before, const wire::SampledObject& now,
                     const Pace& pace) {
  ObjectRates rates{now, {}};
  const wire::SampledObject* const last = same_of(before, now);
  const bool is_known = last != nullptr;
  const bool has_rates = is_known || before.left_out() == 0;
  for (const wire::Sample& sample : now.samples) {
    if (sample.type != wire::SampleType::counter || !has_rates) {
      rates.per_s.emplace_back();
      continue;
    }
    std::uint64_t earlier = 0;
    if (is_known) {
      const auto same = std::ranges::find_if(last->samples, [&](const wire::Sample& other) {
        return other.name == sample.name && other.labels == sample.labels;
      });
      if (same != last->samples.end()) earlier = same->value;
    }
    rates.per_s.emplace_back(pace(earlier, sample.value));
  }
  return rates;
}

/// The element of `all` that is like `one` by this member; a new one if there is none.
template <class T, class Member>
T like(const std::vector<T>& all, const T& one, Member member) {
  const auto at = std::ranges::find(all, one.*member, member);
  return at == all.end() ? T{} : *at;
}

/// How fast numbers of the node rise.
class Rise {
 public:
  Rise(const node::NodeNumbers& before, const node::NodeNumbers& now, const Pace& pace)
      : before_(before), now_(now), pace_(pace) {}
  [[nodiscard]] double operator()(std::string_view name) const {
    return pace_(before_.value(name), now_.value(name));
  }
  [[nodiscard]] std::uint64_t moved_by(std::string_view name) const {
    return moved(before_.value(name), now_.value(name));
  }

 private:
  const node::NodeNumbers& before_;
  const node::NodeNumbers& now_;
  const Pace& pace_;
};

void add_device(TopView& view, const Rise& rise) {
  view.device_round_trips_per_s = rise("device_round_trips");
  view.device_bytes_per_s = rise("device_read_bytes");
  view.device_forwarded_per_s = rise("device_forwarded");
  const std::uint64_t descents = rise.moved_by("device_descents");
  if (descents == 0) return;
  view.device_hits =
      static_cast<double>(rise.moved_by("device_hits")) / static_cast<double>(descents);
}

/// Queries that came to their end, whatever it was.
std::uint64_t over(const node::NodeNumbers& numbers) {
  return numbers.value("queries_ended") + numbers.value("queries_failed") +
         numbers.value("queries_refused");
}

void add_sums(TopView& view, const node::NodeNumbers& before, const Pace& pace) {
  const node::NodeNumbers& now = view.numbers;
  const Rise rise(before, now, pace);
  view.refused_per_s = rise("requests_refused");
  view.unannounced_per_s = rise("unannounced_requests");
  view.connections_refused_per_s = rise("connections_refused");
  view.client_wakes_per_s = rise("client_wakes");
  view.denied_per_s = rise("requests_denied");
  view.authenticated_per_s =
      pace(before.value("authentications", "accepted"), now.value("authentications", "accepted"));
  view.rejected_per_s = pace(rejected(before), rejected(now));
  view.limited_per_s = rise("connections_limited");
  view.snapshots_expired_per_s = rise("snapshots_expired");
  add_device(view, rise);
  for (std::size_t i = 0; i < now.workers.size(); ++i) {
    const node::WorkerNumbers& worker = now.workers[i];
    const auto earlier = i < before.workers.size() ? before.workers[i] : node::WorkerNumbers{};
    view.in_flight += worker.in_flight;
    view.connections += worker.connections;
    view.sleeps_per_s += pace(earlier.sleeps, worker.sleeps);
    view.wake_ups_per_s += pace(earlier.wake_ups, worker.wake_ups);
  }
  for (const wire::SampledObject& object : now.sampled.objects) {
    if (object.kind == ObjectKind::map) {
      view.node_bytes += wire::sample_value(object, "node_bytes");
      view.value_bytes += wire::sample_value(object, "value_bytes");
      view.retired_bytes += wire::sample_value(object, "retired_bytes");
    } else if (object.kind == ObjectKind::table) {
      view.table_bytes += wire::sample_value(object, "memory_bytes");
    }
  }
  view.queries_per_s = pace(over(before), over(now));
  view.queries_failed_per_s = rise("queries_failed");
  view.queries_refused_per_s = rise("queries_refused");
  if (const std::uint64_t threads = now.value("helper_threads"); threads != 0) {
    view.helpers_busy = rise("helper_busy_nanoseconds") * 1e-9 / static_cast<double>(threads);
  }
  if (!view.has_all_objects()) return;
  view.spare_bytes =
      moved(view.node_bytes + view.value_bytes + view.retired_bytes + view.table_bytes,
            now.value("memory_taken_bytes"));
}

}  // namespace

std::uint64_t rejected(const node::NodeNumbers& numbers) {
  std::uint64_t sum = 0;
  for (const char* const result : {"wrong_proof", "failed", "timed_out", "limited"}) {
    sum += numbers.value("authentications", result);
  }
  return sum;
}

TopView view_of(const node::NodeNumbers* before, node::NodeNumbers now, bool has_samples) {
  const node::NodeNumbers nothing;
  const bool goes_on = before != nullptr && before->uptime_ns < now.uptime_ns &&
                       before->start_time_seconds == now.start_time_seconds;
  const node::NodeNumbers& earlier = goes_on ? *before : nothing;
  TopView view;
  view.numbers = std::move(now);
  view.has_samples = has_samples;
  view.since_start = !goes_on;
  view.seconds = static_cast<double>(view.numbers.uptime_ns - earlier.uptime_ns) * 1e-9;
  const Pace pace(view.seconds);
  add_sums(view, earlier, pace);
  for (const node::OffloadNumbers& offload : view.numbers.offloads) {
    const auto last = like(earlier.offloads, offload, &node::OffloadNumbers::id);
    view.offloads.push_back(rates_of(last, offload, pace));
    view.requests_per_s += view.offloads.back().per_s;
  }
  for (const wire::SampledObject& object : view.numbers.sampled.objects) {
    const wire::SampledObject* const last = same_of(earlier.sampled, object);
    // One that was perhaps left out before may be older than the interval.
    const bool is_known = last != nullptr || earlier.sampled.left_out() == 0;
    const Pace pace_of_it(is_known ? view.seconds : 0);
    switch (object.kind) {
      case ObjectKind::map:
        view.maps.push_back(map_rates(last, object, pace_of_it));
        view.feed_followers += wire::sample_value(object, "feed_followers");
        view.feed_moves_per_s += view.maps.back().moves_per_s;
        break;
      case ObjectKind::table: view.tables.push_back(table_rates(last, object, pace_of_it)); break;
      case ObjectKind::sequencer:
        view.sequencers.push_back(sequencer_rates(last, object, pace_of_it));
        break;
      default: view.objects.push_back(rates_of(earlier.sampled, object, pace));
    }
  }
  return view;
}

std::string holders(const TopView& view) {
  const node::NodeNumbers& numbers = view.numbers;
  std::uint64_t snapshots = 0;
  std::uint64_t retired_bytes = 0;
  for (const wire::SampledObject& object : numbers.sampled.objects) {
    if (object.kind != ObjectKind::map) continue;
    snapshots += wire::sample_value(object, "snapshots");
    retired_bytes += wire::sample_value(object, "retired_bytes");
  }
  if (!view.has_all_objects()) {
    snapshots = numbers.value("snapshots");
    for (const memory::Holder& holder : numbers.holders) {
      if (holder.kind == memory::Holder::Kind::epoch) retired_bytes |= holder.bytes;
    }
  }
  std::string text;
  if (snapshots != 0) {
    text = fmt::format("{} snapshot{}", format_count(snapshots), snapshots == 1 ? "" : "s");
  }
  if (const std::uint64_t leases = numbers.value("leases"); leases != 0) {
    text += fmt::format("{}{} lease{}", text.empty() ? "" : ", ", format_count(leases),
                        leases == 1 ? "" : "s");
  }
  // Where nothing waits, nothing is held, however far readers are behind.
  const std::uint64_t behind = moved(numbers.value("epoch_oldest"), numbers.value("epoch_current"));
  if (behind != 0 && retired_bytes != 0) {
    text += fmt::format("{}readers {} behind", text.empty() ? "" : ", ", format_count(behind));
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace espalier::tools
