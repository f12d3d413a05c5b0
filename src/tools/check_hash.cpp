// SPDX-License-Identifier: Apache-2.0
#include "tools/check_hash.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cmdline/text_codec.hpp"
#include "tools/data_place.hpp"
#include "tools/hash_check.hpp"
#include "tools/json_record.hpp"
#include "tools/json_stats.hpp"
#include "tools/numbers.hpp"
#include "tools/progress.hpp"

namespace espalier::tools {
namespace {

HashCheckReport look_at_hash(Environment& environment, const HashMap& map, bool steady,
                             std::uint64_t items) {
  Progress progress(environment, fmt::format("checking '{}'", cmdline::escaped(map.name())),
                    std::nullopt);
  return check_hash_map(map, {.steady = steady},
                        [&](std::uint64_t done) { progress.update_items(done, items); });
}

void print_hash_report_json(std::ostream& out, const HashMap& map, const HashCheckReport& report) {
  nlohmann::ordered_json object;
  set_bytes(object, "map", map.name());
  object["kind"] = "hash";
  object["items"] = report.items;
  object["compared"] = report.quiet;
  object["gets"] = report.gets;
  object["faults"] = report.faults;
  out << object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

void print_hash_report_text(std::ostream& out, const HashMap& map, const HashCheckReport& report) {
  const std::string name = cmdline::escaped(map.name());
  for (const std::string& fault : report.faults) {
    out << fmt::format("hash map '{}': fault: {}\n", name, fault);
  }
  if (!report.faults.empty()) return;
  out << fmt::format("hash map '{}': {} item{} by a walk, {} get{}; {}; no faults found\n", name,
                     format_count(report.items), report.items == 1 ? "" : "s",
                     format_count(report.gets), report.gets == 1 ? "" : "s",
                     report.quiet ? "both agree, and the map's own number"
                                  : "not compared in all, for others may have written");
}

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

Outcome<bool> check_served_hash(Environment& environment, const HashMap& map, bool json) {
  const auto stats = stats_of(map);
  if (!stats) return std::unexpected(stats.error());
  const HashCheckReport report = look_at_hash(environment, map, false, stats->items);
  if (report.stopped_by && report.faults.empty()) {
    return call_failed(fmt::format("check hash map '{}'", cmdline::escaped(map.name())),
                       *report.stopped_by);
  }
  if (json) {
    print_hash_report_json(environment.out, map, report);
  } else {
    print_hash_report_text(environment.out, map, report);
  }
  return report.faults.empty();
}

Outcome<int> check_loaded_hash(Environment& environment, const HashDataset& data, bool json) {
  const auto stats = stats_of(data.map);
  if (!stats) return std::unexpected(stats.error());
  auto faults = data.map.audit();
  if (!faults) return call_failed("audit the hash map", faults.error());
  const HashCheckReport report = look_at_hash(environment, data.map, true, stats->items);
  faults->insert(faults->end(), report.faults.begin(), report.faults.end());
  if (report.stopped_by) {
    faults->push_back(fmt::format("it cannot be read to its end: {}", reason(*report.stopped_by)));
  }
  const auto payload = measure(data.map);
  if (!payload) return std::unexpected(payload.error());
  const std::uint64_t payload_bytes = payload->key_bytes + payload->value_bytes;
  if (json) {
    nlohmann::ordered_json object;
    set_stats(object, *stats);
    object["payload_bytes"] = payload_bytes;
    object["fill"] = share(payload_bytes, stats->memory_bytes);
    object["bytes_per_item"] = share(stats->memory_bytes, stats->items);
    object["faults"] = *faults;
    environment.out << object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
                    << '\n';
    return faults->empty() ? kOk : kFailed;
  }
  environment.out << fmt::format(
      "items       {}\nsegments    {} after {} splits\nmemory      {}, of which {} of long values\n"
      "fill        {:.1f} % of it are keys and values\n"
      "per item    {:.1f} bytes, of which {:.1f} key and value\n",
      format_count(stats->items), format_count(stats->segments), format_count(stats->splits),
      format_bytes(stats->memory_bytes), format_bytes(stats->long_bytes),
      100 * share(payload_bytes, stats->memory_bytes), share(stats->memory_bytes, stats->items),
      share(payload_bytes, stats->items));
  if (faults->empty()) environment.out << "no faults found\n";
  for (const std::string& fault : *faults) environment.out << fmt::format("fault: {}\n", fault);
  return faults->empty() ? kOk : kFailed;
}

}  // namespace espalier::tools
