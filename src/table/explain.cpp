// SPDX-License-Identifier: Apache-2.0
#include "table/explain.hpp"

#include <span>

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

}  // namespace

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
