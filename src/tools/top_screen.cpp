// SPDX-License-Identifier: Apache-2.0
#include "tools/top_screen.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/utf8.hpp"
#include "cmdline/short_number.hpp"
#include "cmdline/text_codec.hpp"
#include "tools/asked_numbers.hpp"
#include "tools/numbers.hpp"
#include "tools/shown_samples.hpp"

namespace espalier::tools {
namespace {

/// Bytes a second; what is beyond belief is cut.
std::string byte_rate(double per_s) {
  constexpr double kMost = 1e18;
  return format_bytes(static_cast<std::uint64_t>(std::clamp(per_s, 0.0, kMost)));
}

/// A number for a narrow column; what is beyond belief is cut.
std::string short_number(double value) { return cmdline::short_number(std::min(value, 999e9)); }
std::string short_number(std::uint64_t value) { return short_number(static_cast<double>(value)); }

std::string bytes_of(const node::NodeNumbers& numbers, std::string_view name) {
  return format_bytes(numbers.value(name));
}

std::string duration(std::optional<double> ns) {
  if (!ns) return "-";
  return format_nanoseconds(*ns);
}

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

/// The first `columns` characters. The terminal cuts what is wider than its characters are many.
std::string cut(std::string text, std::size_t columns) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < columns && at < text.size(); ++i) {
    at += std::max<std::size_t>(1, base::utf8_sequence_bytes(std::string_view(text).substr(at)));
  }
  if (at < text.size()) text.resize(at);
  return text;
}

void add_client_lines(std::vector<std::string>& lines, const TopView& view) {
  const node::NodeNumbers& numbers = view.numbers;
  lines.push_back(fmt::format("clients   {} connected, {} /s woken, {} /s turned away",
                              short_number(view.connections), short_number(view.client_wakes_per_s),
                              short_number(view.connections_refused_per_s)));
  lines.push_back(fmt::format(
      "rings     {} of {}; {} /s clients beyond a limit, {} pending",
      bytes_of(numbers, "ring_bytes"), bytes_of(numbers, "ring_limit_bytes"),
      short_number(view.limited_per_s), short_number(numbers.value("pending_connections"))));
  const std::uint64_t pending = numbers.value("pending_peers");
  if (numbers.value("authentications", "accepted") + numbers.value("requests_denied") + pending +
          rejected(numbers) !=
      0) {
    lines.push_back(
        fmt::format("access    {} /s authenticated, {} /s not, {} pending; {} /s requests denied",
                    short_number(view.authenticated_per_s), short_number(view.rejected_per_s),
                    short_number(pending), short_number(view.denied_per_s)));
  }
  lines.push_back(fmt::format("workers   {}, {} /s sleeps, {} /s wake-ups", numbers.workers.size(),
                              short_number(view.sleeps_per_s), short_number(view.wake_ups_per_s)));
}

void add_memory_lines(std::vector<std::string>& lines, const TopView& view) {
  const node::NodeNumbers& numbers = view.numbers;
  lines.push_back(fmt::format(
      "memory    {} of {} ({:.1f} %), {} of {} in arriving messages",
      bytes_of(numbers, "memory_taken_bytes"), bytes_of(numbers, "memory_limit_bytes"),
      percent(numbers.value("memory_taken_bytes"), numbers.value("memory_limit_bytes")),
      bytes_of(numbers, "long_message_bytes"), bytes_of(numbers, "long_message_limit_bytes")));
  const std::string tables =
      view.tables.empty() ? "" : fmt::format(" {} tables,", format_bytes(view.table_bytes));
  const std::string spare =
      view.spare_bytes ? fmt::format(", {} spare", format_bytes(*view.spare_bytes)) : "";
  if (view.has_samples) {
    lines.push_back(fmt::format("          {} nodes, {} values,{} {} retired{}",
                                format_bytes(view.node_bytes), format_bytes(view.value_bytes),
                                tables, format_bytes(view.retired_bytes), spare));
  }
  const std::uint64_t snapshots = numbers.value("snapshots");
  if (snapshots + numbers.value("snapshots_expired") != 0) {
    lines.push_back(fmt::format("snapshots {} hold {} of {}, {} /s expired",
                                short_number(snapshots), bytes_of(numbers, "snapshot_bytes"),
                                bytes_of(numbers, "snapshot_limit_bytes"),
                                short_number(view.snapshots_expired_per_s)));
  }
}

std::vector<std::string> summary_lines(const TopView& view, const TopPicture& picture) {
  const node::NodeNumbers& numbers = view.numbers;
  std::vector<std::string> lines;
  lines.push_back(fmt::format("espalier {} at {}, up {}; {}", cmdline::escaped(numbers.version),
                              cmdline::escaped(picture.address),
                              format_duration(static_cast<double>(numbers.uptime_ns) * 1e-9),
                              view.since_start
                                  ? "rates since its start"
                                  : fmt::format("rates of the last {:.1f} s", view.seconds)));
  lines.push_back(
      fmt::format("requests  {} /s, {} in flight; {} /s refused, {} /s found without a doorbell",
                  short_number(view.requests_per_s), short_number(view.in_flight),
                  short_number(view.refused_per_s), short_number(view.unannounced_per_s)));
  add_client_lines(lines, view);
  if (!view.tables.empty()) {
    lines.push_back(fmt::format(
        "queries   {} running, {} waiting; {} /s over, {} /s failed, {} /s "
        "refused",
        short_number(numbers.value("queries_running")),
        short_number(numbers.value("queries_waiting")), short_number(view.queries_per_s),
        short_number(view.queries_failed_per_s), short_number(view.queries_refused_per_s)));
    lines.push_back(fmt::format("helpers   {}, {:.1f} % busy; {} jobs ready, {} waiting",
                                short_number(numbers.value("helper_threads")),
                                100 * std::clamp(view.helpers_busy, 0.0, 1.0),
                                short_number(numbers.value("helper_jobs", "ready")),
                                short_number(numbers.value("helper_jobs", "waiting"))));
  }
  add_memory_lines(lines, view);
  if (is_device(numbers)) {
    lines.push_back(fmt::format(
        "device    {} /s round trips, {} /s read; knew {:.1f} %; {} /s by its host",
        short_number(view.device_round_trips_per_s), byte_rate(view.device_bytes_per_s),
        100 * std::clamp(view.device_hits, 0.0, 1.0), short_number(view.device_forwarded_per_s)));
  }
  if (view.feed_followers != 0) {
    lines.push_back(fmt::format("feeds     {} followers, {} /s moves told",
                                short_number(view.feed_followers),
                                short_number(view.feed_moves_per_s)));
  }
  lines.push_back(fmt::format("epochs    {}, oldest {}, held by {}; {}/{} places",
                              numbers.value("epoch_current"), numbers.value("epoch_oldest"),
                              holders(view), numbers.value("epoch_participants"),
                              numbers.value("epoch_participants_limit")));
  return lines;
}

/// The order in which elements are shown: the largest by `rank` first, names where that is equal.
template <class T, class Rank>
std::vector<const T*> sorted(const std::vector<T>& all, Rank rank) {
  std::vector<const T*> order;
  for (const T& one : all) order.push_back(&one);
  std::ranges::sort(order, [&](const T* a, const T* b) {
    const auto [x, y] = std::pair(rank(*a), rank(*b));
    if (x != y) return x > y;
    return a->name != b->name ? a->name < b->name : a < b;
  });
  return order;
}

std::vector<std::string> offload_lines(const TopView& view, TopSort sort) {
  const auto rank = [sort](const OffloadRates& offload) {
    const auto requests = static_cast<double>(offload.requests);
    if (sort == TopSort::name) return std::pair(0.0, 0.0);
    return sort == TopSort::size ? std::pair(requests, 0.0) : std::pair(offload.per_s, requests);
  };
  constexpr auto kRow = "{:<16}{:>12}{:>8}{:>10}{:>10}{:>10}{:>10}";
  std::vector<std::string> lines;
  lines.push_back(
      fmt::format(kRow, "offload", "requests/s", "share", "p50", "p99", "mean", "total"));
  for (const OffloadRates* offload : sorted(view.offloads, rank)) {
    if (offload->requests == 0) continue;
    const double share = view.requests_per_s > 0 ? 100 * offload->per_s / view.requests_per_s : 0;
    lines.push_back(fmt::format(kRow, cut(offload->name, 16), short_number(offload->per_s),
                                fmt::format("{:.1f} %", share), duration(offload->p50_ns),
                                duration(offload->p99_ns), duration(offload->mean_ns),
                                short_number(offload->requests)));
  }
  return lines;
}

// Names stand last, for how wide their characters are only the terminal knows.
std::vector<std::string> map_lines(const TopView& view, TopSort sort) {
  const auto rank = [sort](const MapRates& map) {
    const auto bytes = static_cast<double>(map.value("node_bytes") + map.value("value_bytes"));
    if (sort == TopSort::name) return std::pair(0.0, 0.0);
    return sort == TopSort::size ? std::pair(bytes, 0.0) : std::pair(map.writes_per_s, bytes);
  };
  constexpr auto kRow = "{:>8}{:>7}{:>8}{:>8}{:>10}{:>11}{:>11}{:>6}  {}";
  std::vector<std::string> lines;
  lines.push_back(fmt::format(kRow, "items", "height", "nodes", "B/item", "writes/s", "unreleased",
                              "retired", "snaps", "map"));
  for (const MapRates* map : sorted(view.maps, rank)) {
    const std::uint64_t items = map->value("items");
    lines.push_back(fmt::format(
        kRow, short_number(items), short_number(map->value("height")),
        short_number(map->value("leaves") + map->value("interior_nodes")),
        items == 0 ? "-" : fmt::format("{:.1f}", std::min(map->bytes_per_item, 99999.9)),
        short_number(map->writes_per_s), short_number(map->unreleased),
        format_bytes(map->value("retired_bytes")), short_number(map->value("snapshots")),
        cmdline::escaped(map->name)));
  }
  return lines;
}

std::vector<std::string> table_lines(const TopView& view, TopSort sort) {
  const auto rank = [sort](const TableRates& table) {
    const auto bytes = static_cast<double>(table.value("memory_bytes"));
    if (sort == TopSort::name) return std::pair(0.0, 0.0);
    return sort == TopSort::size ? std::pair(bytes, 0.0) : std::pair(table.read_bytes_per_s, bytes);
  };
  constexpr auto kRow = "{:>8}{:>11}{:>11}{:>9}{:>9}{:>10}{:>10}  {}";
  std::vector<std::string> lines;
  lines.push_back(fmt::format(kRow, "rows", "memory", "queries/s", "running", "waiting", "read/s",
                              "sent/s", "table"));
  for (const TableRates* table : sorted(view.tables, rank)) {
    lines.push_back(fmt::format(
        kRow, short_number(table->value("rows")), format_bytes(table->value("memory_bytes")),
        short_number(table->queries_per_s), short_number(table->value("queries_running")),
        short_number(table->value("queries_waiting")), byte_rate(table->read_bytes_per_s),
        byte_rate(table->sent_bytes_per_s), cmdline::escaped(table->name)));
  }
  return lines;
}

std::string_view state_of(const SequencerRates& sequencer) {
  if (sequencer.value("overwritten") != 0) return "overwritten";
  return sequencer.value("sealed") != 0 ? "sealed" : "open";
}

std::vector<std::string> sequencer_lines(const TopView& view, TopSort sort) {
  const auto rank = [sort](const SequencerRates& sequencer) {
    const auto next = static_cast<double>(sequencer.value("next"));
    if (sort == TopSort::name) return std::pair(0.0, 0.0);
    return sort == TopSort::size ? std::pair(next, 0.0) : std::pair(sequencer.numbers_per_s, next);
  };
  constexpr auto kRow = "{:>16}{:>7}{:>12}{:>12}{:>9}{:>13}  {}";
  std::vector<std::string> lines;
  lines.push_back(fmt::format(kRow, "next", "epoch", "numbers/s", "requests/s", "adds/s", "state",
                              "sequencer"));
  for (const SequencerRates* sequencer : sorted(view.sequencers, rank)) {
    lines.push_back(fmt::format(kRow, sequencer->value("next"), sequencer->value("epoch"),
                                short_number(sequencer->numbers_per_s),
                                short_number(sequencer->requests_per_s),
                                short_number(sequencer->adds_per_s), state_of(*sequencer),
                                cmdline::escaped(sequencer->name)));
  }
  return lines;
}

/// One sample of an object of a kind that has no columns of its own.
struct SampleRow {
  std::string_view name;  ///< of its object, any bytes
  const ObjectRates* rates;
  std::size_t number;

  [[nodiscard]] const wire::Sample& sample() const { return rates->object.samples[number]; }
  [[nodiscard]] std::optional<double> per_s() const { return rates->per_s[number]; }
};

// The object first: a narrow window shows of its samples at least whose they are.
std::string line_of(const SampleRow& row) {
  const wire::Sample& sample = row.sample();
  const bool is_bytes = sample.unit == "bytes";
  const std::optional<double> per_s = row.per_s();
  const std::string value = sample.unit.empty() ? short_number(sample.value) : shown_value(sample);
  const std::string rise = !per_s ? "-" : (is_bytes ? byte_rate(*per_s) : short_number(*per_s));
  return fmt::format("{:>12}{:>11}  {}: {} ({})", value, rise, cmdline::escaped(row.name),
                     shown_name(sample), shown_kind(row.rates->object));
}

/// With the heading, and a line of the objects that the node left out, of whatever kind.
std::size_t sample_line_count(const TopView& view) {
  if (view.objects.empty() && view.numbers.sampled.left_out() == 0) return 0;
  std::size_t count = view.numbers.sampled.left_out() == 0 ? 1 : 2;
  for (const ObjectRates& rates : view.objects) count += rates.object.samples.size();
  return count;
}

/// The first lines, `room` at most.
std::vector<std::string> sample_lines(const TopView& view, TopSort sort, std::size_t room) {
  const auto rank = [sort](const SampleRow& row) {
    const auto size = static_cast<double>(row.sample().value);
    if (sort == TopSort::name) return std::pair(0.0, 0.0);
    return sort == TopSort::size ? std::pair(size, 0.0) : std::pair(row.per_s().value_or(0), size);
  };
  std::vector<std::string> lines;
  if (room == 0) return lines;
  std::vector<SampleRow> all;
  for (const ObjectRates& rates : view.objects) {
    for (std::size_t i = 0; i < rates.object.samples.size(); ++i) {
      all.push_back({rates.object.name, &rates, i});
    }
  }
  lines.push_back(fmt::format("{:>12}{:>11}  {}", "value", "rise/s", "object: sample (kind)"));
  for (const SampleRow* row : sorted(all, rank)) {
    if (lines.size() == room) return lines;
    lines.push_back(line_of(*row));
  }
  const std::uint64_t objects = view.numbers.sampled.left_out();
  if (objects != 0 && lines.size() != room) {
    lines.push_back(fmt::format("... and those of {} other objects", short_number(objects)));
  }
  return lines;
}

/// A table of `all` lines, of which the first are given, in so much room; its last row says how
/// many did not fit. Requires: as many lines are given as fit.
void add_table(std::vector<ScreenLine>& to, std::vector<std::string> lines, std::size_t room,
               std::size_t all) {
  if (room == 0) return;
  if (all > room) {
    lines.resize(room);
    if (room > 1) lines.back() = fmt::format("... {} more", all - room + 1);
  }
  bool heading = true;
  for (std::string& line : lines) to.push_back({std::move(line), std::exchange(heading, false)});
}
void add_table(std::vector<ScreenLine>& to, std::vector<std::string> lines, std::size_t room) {
  const std::size_t all = lines.size();
  add_table(to, std::move(lines), room, all);
}

}  // namespace

std::string_view name(TopSort sort) {
  switch (sort) {
    case TopSort::activity: return "activity";
    case TopSort::size: return "size";
    case TopSort::name: return "name";
  }
  std::unreachable();
}

TopSort next(TopSort sort) {
  return sort == TopSort::name ? TopSort::activity
                               : static_cast<TopSort>(static_cast<int>(sort) + 1);
}

std::vector<ScreenLine> draw_top(const TopView& view, const TopPicture& picture, ScreenSize size) {
  std::vector<ScreenLine> lines;
  const bool whole = size.rows == 0;
  for (std::string& line : summary_lines(view, picture)) lines.push_back({std::move(line)});
  lines.front().heading = true;
  std::string offloads_before =
      picture.trouble.empty() ? "" : "! " + cmdline::escaped(picture.trouble);
  lines.push_back({std::move(offloads_before)});
  auto offloads = offload_lines(view, picture.sort);
  auto maps = map_lines(view, picture.sort);
  auto tables = view.tables.empty() ? std::vector<std::string>{} : table_lines(view, picture.sort);
  auto sequencers =
      view.sequencers.empty() ? std::vector<std::string>{} : sequencer_lines(view, picture.sort);
  const std::size_t samples = sample_line_count(view);
  // Gaps between the lists, and a line of keys. Tables, sequencers and samples get a quarter each,
  // offloads and maps half of the rest each, and what the others leave.
  const std::size_t used = lines.size() + 2 + (tables.empty() ? 0 : 1) +
                           (sequencers.empty() ? 0 : 1) + (samples == 0 ? 0 : 1);
  const std::size_t first_two = offloads.size() + maps.size();
  const std::size_t first_four = first_two + tables.size() + sequencers.size();
  const std::size_t all = first_four + samples;
  const std::size_t room = whole ? all : std::max(size.rows, used) - used;
  const auto share = [room](std::size_t of, std::size_t others) {
    return std::min(of, std::max(room / 4, room - std::min(room, others)));
  };
  const std::size_t for_samples = share(samples, first_four);
  const std::size_t for_sequencers =
      share(sequencers.size(), first_two + tables.size() + for_samples);
  const std::size_t for_tables = share(tables.size(), first_two + for_sequencers + for_samples);
  const std::size_t rest = room - std::min(room, for_tables + for_sequencers + for_samples);
  const std::size_t for_maps =
      std::min(maps.size(), std::max(rest / 2, rest - std::min(rest, offloads.size())));
  add_table(lines, std::move(offloads), rest - for_maps);
  lines.push_back({""});
  add_table(lines, std::move(maps), for_maps);
  if (!tables.empty()) lines.push_back({""});
  add_table(lines, std::move(tables), for_tables);
  if (!sequencers.empty()) lines.push_back({""});
  add_table(lines, std::move(sequencers), for_sequencers);
  if (samples != 0) lines.push_back({""});
  add_table(lines, sample_lines(view, picture.sort, for_samples), for_samples, samples);
  if (!whole) {
    lines.resize(std::max<std::size_t>(size.rows, 1) - 1);
    lines.push_back({fmt::format("q quits, s sorts: now by {}", name(picture.sort))});
  }
  for (ScreenLine& line : lines) line.text = cut(std::move(line.text), size.columns);
  return lines;
}

}  // namespace espalier::tools
