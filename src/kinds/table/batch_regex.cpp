// SPDX-License-Identifier: Apache-2.0
// Regular expressions of a batch.
#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/assert.hpp"
#include "kinds/table/batch_compiler.hpp"

namespace espalier::table {
namespace {

using wire::ExpressionKind;

/// A null's text is empty, so that it is searched too; its answer is then made null.
std::uint32_t search(const Instruction& instruction, const Register* registers,
                     const Batch& batch) {
  const Register& to = registers[instruction.to];
  const Register& a = registers[instruction.a];
  std::uint8_t* const truths = to.truths();
  instruction.regex->search(std::span<const std::string_view>(a.texts(), batch.count), batch.ahead,
                            truths);
  if (!instruction.nullable) return batch.count;
  std::uint8_t* const nulls = to.nulls();
  std::memcpy(nulls, a.nulls(), batch.count);
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    truths[i] = static_cast<std::uint8_t>(truths[i] & (nulls[i] ^ 1u));
  }
  return batch.count;
}

}  // namespace

Kernel regex_kernel() { return search; }

BatchCompiler::Operand BatchCompiler::matches(std::uint16_t node) {
  const Node& of = node_of(node);
  const Operand a = compile(of.a);
  if (program_.pipeline_.constants[of.b].null) {
    Constant& unknown = program_.own_constants_.emplace_back();
    unknown.type = of.type;
    unknown.null = true;
    return constant(unknown);
  }
  Instruction& instruction = emit(regex_kernel(), node, of.type);
  ESPALIER_ASSERT(node < program_.pipeline_.regexes.size());
  instruction.regex = program_.pipeline_.regexes[node].get();
  ESPALIER_ASSERT(instruction.regex != nullptr);
  take(instruction, a, nullptr);
  program_.has_regexes_ = true;
  return temporary(instruction, of.type);
}

PipelineResult<void> compile_regexes(Pipeline& pipeline, RegexCompiler& compiler) {
  pipeline.regexes.assign(pipeline.nodes.size(), nullptr);
  for (std::size_t i = 0; i < pipeline.nodes.size(); ++i) {
    const Node& node = pipeline.nodes[i];
    if (node.kind != ExpressionKind::matches || pipeline.constants[node.b].null) continue;
    auto regex = compiler.compile(pipeline.constants[node.b].text,
                                  {.ignore_case = (node.c & wire::kMatchIgnoresCase) != 0});
    if (!regex) {
      const std::uint32_t user = pipeline.users[i];
      const bool filters = std::ranges::find(pipeline.filters, user, &Filter::operator_index) !=
                           pipeline.filters.end();
      const auto kind = filters            ? wire::OperatorKind::filter
                        : pipeline.grouped ? wire::OperatorKind::group_by
                                           : wire::OperatorKind::project;
      return std::unexpected(
          PipelineError{user, std::string(name_of(kind)), std::move(regex.error())});
    }
    pipeline.regexes[i] = *std::move(regex);
  }
  return {};
}

}  // namespace espalier::table
