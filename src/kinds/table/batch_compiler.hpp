// SPDX-License-Identifier: Apache-2.0
// Compiles the expressions of a pipeline into the instructions of a BatchProgram.
//
// Register allocation. A constant has its own register in the whole program. A column is loaded
// once for each stage. Temporaries come from a free list and return to it after use.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kinds/table/batch_program.hpp"

namespace espalier::table {

class BatchCompiler {
 public:
  explicit BatchCompiler(BatchProgram& program) : program_(program) {}

  void run();

 private:
  /// The value of an expression, in a register.
  struct Operand {
    std::uint16_t reg = 0;
    ValueType type;
    bool temporary = false;  // its register is freed after use
    const Constant* constant = nullptr;
  };

  void begin(Stage& stage);
  Operand compile(std::uint16_t node);
  Operand column(std::uint16_t node);
  Operand constant(const Constant& value);
  Operand arithmetic(std::uint16_t node);
  Operand comparison(std::uint16_t node, wire::ExpressionKind op, const Operand& a,
                     const Operand& b);
  Operand logic(std::uint16_t node, wire::ExpressionKind op, const Operand& a, const Operand* b);
  Operand between(std::uint16_t node);
  Operand in(std::uint16_t node);
  Operand like(std::uint16_t node);
  Operand matches(std::uint16_t node);
  Operand as_real(std::uint16_t node, const Operand& value);
  /// The constant as a decimal of another scale, if it is exact.
  std::optional<Operand> rescaled(const Operand& value, unsigned scale);
  void align(Operand& a, Operand& b);

  Instruction& emit(Kernel kernel, std::uint16_t node, const ValueType& type);
  /// Sets an instruction's operands, and frees their registers.
  void take(Instruction& instruction, const Operand& a, const Operand* b);
  void release(const Operand& value);
  std::uint16_t new_register();
  [[nodiscard]] const Node& node_of(std::uint16_t node) const {
    return program_.pipeline_.nodes[node];
  }
  [[nodiscard]] static Operand temporary(const Instruction& instruction, const ValueType& type) {
    return {instruction.to, type, true, nullptr};
  }

  BatchProgram& program_;
  Stage* stage_ = nullptr;
  std::vector<std::optional<std::uint16_t>> columns_;  // loaded in this stage
  std::vector<std::uint16_t> used_;                    // by this stage, but constants
  std::vector<std::uint16_t> free_;
};

}  // namespace espalier::table
