// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/explain.hpp"

#include <algorithm>
#include <set>
#include <span>

#include "kinds/table/decrypted_rows.hpp"
#include "kinds/table/staged_run.hpp"

namespace espalier::table {
namespace {

std::string item_text(const Pipeline& pipeline, const Item& item) {
  if (item.aggregate == wire::Aggregate::none) return expression_text(pipeline, item.node);
  if (item.aggregate == wire::Aggregate::count_rows) return "count(*)";
  return std::string(name_of(item.aggregate)) + "(" + expression_text(pipeline, item.node) + ")";
}

std::string list_text(const Pipeline& pipeline, std::span<const Item> items) {
  std::string text;
  for (const Item& item : items) {
    if (!text.empty()) text += ", ";
    text += item_text(pipeline, item);
  }
  return text;
}

std::string scan_text(const BatchProgram& program) {
  const WantedLines& lines = program.lines();
  if (!program.is_smart()) return "scan: whole rows";
  return "scan, smart: " + std::to_string(lines.filters.size()) + " lines of a row for filters, " +
         std::to_string(lines.items.size()) + " more of rows that pass, of " +
         std::to_string(lines.total);
}

// What the instructions of an operator need that none before it did.
std::size_t register_bytes(const Stage& stage, std::set<std::uint16_t>& seen) {
  std::size_t bytes = 0;
  for (const Instruction& instruction : stage.code) {
    if (seen.insert(instruction.to).second) bytes += Register::kBytes;
  }
  return bytes;
}

std::size_t clear_rows_bytes(const BatchProgram& program) {
  const WantedLines& lines = program.lines();
  const std::size_t wanted = std::max<std::size_t>(lines.filters.size() + lines.items.size(), 1);
  return DecryptedRows::bytes_of(program.pipeline().schema.row_bytes(),
                                 program.is_smart() ? wanted : 0);
}

}  // namespace

std::vector<OperatorState> operator_states(const BatchProgram& program,
                                           std::uint64_t memory_bytes) {
  const Pipeline& pipeline = program.pipeline();
  std::vector<OperatorState> states;
  std::size_t left = memory_bytes;
  const auto add = [&](std::string_view name, std::size_t bytes) {
    states.push_back({name, bytes});
    left -= std::min(left, bytes);
  };
  if (pipeline.decrypt) add("decrypt", clear_rows_bytes(program));
  add("scan", 0);
  std::set<std::uint16_t> seen;
  for (const Stage& filter : program.filters()) add("filter", register_bytes(filter, seen));
  const std::size_t items = register_bytes(program.items(), seen);
  const std::size_t rest = (program.registers() - seen.size()) * Register::kBytes;
  // Keys of a batch, and groups or distinct rows; where there are neither, constants.
  if (pipeline.grouped) {
    states.push_back({"group", std::max(left, items + rest)});
  } else if (pipeline.distinct) {
    add("project", items + rest);
    states.push_back({"distinct", left});
  } else {
    states.push_back({"project", std::max(left, items + rest)});
  }
  if (pipeline.limit) states.push_back({"limit", 0});
  if (pipeline.encrypt) states.push_back({"encrypt", 0});
  states.push_back(
      {"pack", std::max<std::size_t>(StagedRun::kStageBytes, pipeline.result.row_bytes())});
  return states;
}

std::vector<std::string> explain(const BatchProgram& program) {
  const Pipeline& pipeline = program.pipeline();
  std::vector<std::string> lines;
  if (pipeline.decrypt) lines.emplace_back("decrypt: AES-128-CTR");
  lines.push_back(scan_text(program));
  for (const Filter& filter : pipeline.filters) {
    lines.push_back("filter: " + expression_text(pipeline, filter.node));
  }
  const std::span<const Item> items = pipeline.items;
  if (pipeline.grouped) {
    std::string text = "group";
    if (pipeline.keys != 0) text += " by " + list_text(pipeline, items.first(pipeline.keys));
    if (pipeline.keys != items.size()) {
      text += ": " + list_text(pipeline, items.subspan(pipeline.keys));
    }
    lines.push_back(std::move(text));
  } else {
    lines.push_back("project: " + list_text(pipeline, items));
  }
  if (pipeline.distinct) lines.emplace_back("distinct");
  if (pipeline.limit) lines.push_back("limit: " + std::to_string(*pipeline.limit));
  if (pipeline.encrypt) lines.emplace_back("encrypt: AES-128-CTR");
  lines.push_back("pack: rows of " + std::to_string(pipeline.result.row_bytes()) + " bytes");
  return lines;
}

}  // namespace espalier::table
