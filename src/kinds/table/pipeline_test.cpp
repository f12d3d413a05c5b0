// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/pipeline.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>

#include "base/random.hpp"
#include "kinds/table/batch_program.hpp"
#include "kinds/table/pipeline_builder.hpp"
#include "kinds/table/testing/literal_regexes.hpp"
#include "kinds/table/testing/random_pipeline.hpp"

namespace espalier::table {
namespace {

using std::string_literals::operator""s;
using wire::Aggregate;
using wire::ExpressionKind;
using wire::OperatorKind;
using wire::ValueKind;

Schema schema_of_six_types() {
  return *Schema::parse("a i32 not null, b decimal(12,2), c text(20), d double, e bool, f date");
}

/// select a, sum(b) from t where b < 9.95 and c like 'x%' group by a limit 3
PipelineBuilder sample() {
  PipelineBuilder builder;
  const auto price = builder.column(1);
  builder.filter(
      builder.binary(ExpressionKind::less, price, builder.constant(decimal_constant(995, 2))));
  builder.filter(builder.like(builder.column(2), text_constant("x%")));
  const PipelineBuilder::NodeId keys[] = {builder.column(0)};
  const PipelineBuilder::AggregateOf aggregates[] = {{Aggregate::sum, builder.column(1)},
                                                     {Aggregate::count_rows, wire::kNoExpression}};
  builder.group_by(keys, aggregates);
  builder.limit(3);
  return builder;
}

TEST(Pipeline, GoldenBytes) {
  const auto bytes = *sample().finish();
  // clang-format off
  const std::string expected =
      "ESPI\1\0\0\0\xF8\0\0\0\6\0\2\0\7\0\3\0\2\0\0\0\0\0\0\0\0\0\0\0"s +  // header
      "\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"s +                                 // scan
      "\3\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"s +                                 // filter, node 2
      "\3\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0"s +                                 // filter, node 4
      "\7\0\0\0\0\0\3\0\1\0\0\0\0\0\0\0"s +                                 // group by, 3 items
      "\x08\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0"s +                               // limit
      "\x0A\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"s +                               // pack
      "\3\2\0\0\0\0\0\0\xE3\3\0\0\0\0\0\0"s +                               // 9.95
      "\7\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0"s +                                 // 'x%'
      "\1\0\1\0\0\0\0\0"s + "\2\0\0\0\0\0\0\0"s + "\x08\0\0\0\1\0\0\0"s +   // b < constant 0
      "\1\0\2\0\0\0\0\0"s + "\x12\0\3\0\1\0\0\0"s +                         // c like constant 1
      "\1\0\0\0\0\0\0\0"s + "\1\0\1\0\0\0\0\0"s +                           // a, b
      "\5\0\0\0\0\0\0\0"s + "\6\0\5\0\0\0\0\0"s + "\xFF\xFF\1\0\0\0\0\0"s +  // items
      "x%\0\0\0\0\0\0"s;
  // clang-format on
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), expected);
}

TEST(Pipeline, TellsTheResultsRows) {
  const auto pipeline = check_pipeline(*sample().finish(), schema_of_six_types());
  ASSERT_TRUE(pipeline) << pipeline.error().message();
  EXPECT_EQ(pipeline->result.to_text(),
            "r0 i32 not null, r1_low i64, r1_high i64, r2 i64 not null");
  EXPECT_EQ(pipeline->keys, 1);
  EXPECT_EQ(pipeline->limit, 3u);
  EXPECT_EQ(expression_text(*pipeline, pipeline->filters[0].node), "b < 9.95");
  EXPECT_EQ(expression_text(*pipeline, pipeline->filters[1].node), "c like 'x%'");
}

TEST(Pipeline, WithoutItemsAllColumnsAreTheResult) {
  const auto pipeline = check_pipeline(*PipelineBuilder().finish(), schema_of_six_types());
  ASSERT_TRUE(pipeline);
  ASSERT_EQ(pipeline->result.columns().size(), 6u);
  EXPECT_EQ(pipeline->result.row_bytes(), schema_of_six_types().row_bytes());
}

/// What is said of the sample after a change.
std::string refused(const std::function<void(PipelineMessage&)>& change) {
  PipelineMessage message = sample().message();
  change(message);
  const auto pipeline = check_pipeline(encode_pipeline(message), schema_of_six_types());
  return pipeline ? "" : pipeline.error().message();
}

TEST(Pipeline, RefusesOperatorsOutOfOrder) {
  EXPECT_EQ(refused([](PipelineMessage& m) { std::swap(m.operators[0], m.operators[1]); }),
            "operator 0 (filter): it stands before the scan");
  EXPECT_EQ(refused([](PipelineMessage& m) { std::swap(m.operators[3], m.operators[4]); }),
            "operator 4 (group by): it cannot stand behind limit");
  EXPECT_EQ(refused([](PipelineMessage& m) { m.operators.pop_back(); }),
            "the pipeline does not end with pack");
  EXPECT_EQ(refused([](PipelineMessage& m) { m.operators = {}; }),
            "there are items without an operator");
  EXPECT_EQ(refused([](PipelineMessage& m) { m.operators.erase(m.operators.begin() + 1); }),
            "expression node 2 is not used");
  EXPECT_EQ(refused([](PipelineMessage& m) { m.operators[5] = m.operators[4]; }),
            "operator 5 (limit): it cannot stand behind limit");
  EXPECT_EQ(refused([](PipelineMessage& m) { m.operators[4] = {6, 0, 0, 0, 0}; }),
            "operator 4 (distinct): it cannot stand behind group by");
  EXPECT_EQ(refused([](PipelineMessage& m) { m.operators[1].kind = 4; }),
            "expression node 2 is not used");
  EXPECT_EQ(refused([](PipelineMessage& m) { m.operators[0].kind = 9; }),
            "operator 0 (encrypt): it stands before the scan");
  EXPECT_EQ(refused([](PipelineMessage& m) {
              m.operators.insert(m.operators.begin(), 2, {1, 0, 0, 0, 0});
            }),
            "operator 1 (decrypt): it cannot stand behind decrypt");
  EXPECT_EQ(refused([](PipelineMessage& m) {
              m.operators.insert(m.operators.begin() + 1, {1, 0, 0, 0, 0});
            }),
            "operator 1 (decrypt): it cannot stand behind scan");
  EXPECT_EQ(
      refused([](PipelineMessage& m) { m.operators.insert(m.operators.begin(), {1, 0, 0, 0, 7}); }),
      "operator 0 (decrypt): its argument is not 0");
  EXPECT_EQ(refused([](PipelineMessage& m) {
              m.operators.insert(m.operators.begin(), {1, 0, 0, 0, 0});
              m.operators.insert(m.operators.end() - 1, {9, 0, 0, 0, 0});
            }),
            "");
}

TEST(Pipeline, RefusesBadForm) {
  const auto operators = [](std::size_t i, auto change) {
    return refused([=](PipelineMessage& m) { change(m.operators[i]); });
  };
  const auto nodes = [](std::size_t i, auto change) {
    return refused([=](PipelineMessage& m) { change(m.nodes[i]); });
  };
  EXPECT_EQ(operators(1, [](auto& o) { o.kind = 99; }),
            "operator 1 (unknown operator): no operator has the number 99");
  EXPECT_EQ(operators(1, [](auto& o) { o.reserved = 1; }),
            "operator 1 (filter): a reserved byte is not 0");
  EXPECT_EQ(operators(1, [](auto& o) { o.argument = 9; }),
            "operator 1 (filter): its condition is no expression, or that of another");
  EXPECT_EQ(operators(2, [](auto& o) { o.argument = 2; }),
            "operator 2 (filter): its condition is no expression, or that of another");
  EXPECT_EQ(operators(4, [](auto& o) { o.items = 1; }), "operator 4 (limit): it has no items");
  EXPECT_EQ(operators(3, [](auto& o) { o.argument = 4; }),
            "operator 3 (group by): it has more keys than items");
  EXPECT_EQ(operators(3, [](auto& o) { o.argument = 0; }),
            "operator 3 (group by): item 0 is neither a key nor an aggregate");
  EXPECT_EQ(operators(3, [](auto& o) { o.argument = 2; }),
            "operator 3 (group by): item 1 is an aggregate among keys");
  EXPECT_EQ(operators(0, [](auto& o) { o.argument = 3; }),
            "operator 0 (scan): there is no addressing 3");
  EXPECT_EQ(nodes(2, [](auto& n) { n.kind = 20; }), "expression node 2 has an unknown kind");
  EXPECT_EQ(nodes(2, [](auto& n) { n.b = 2; }),
            "expression node 2 has a child that does not precede it");
  EXPECT_EQ(nodes(2, [](auto& n) { n.b = 0; }), "expression node 0 is used twice");
  EXPECT_EQ(nodes(2, [](auto& n) { n.c = 1; }),
            "expression node 2 has a reserved byte that is not 0");
  EXPECT_EQ(nodes(1, [](auto& n) { n.a = 2; }),
            "expression node 1 names a constant that there is not");
  EXPECT_EQ(nodes(0, [](auto& n) { n.a = 6; }), "operator 1 (filter): the table has no column 6");
  EXPECT_EQ(refused([](auto& m) { m.constants[1].value = 1; }),
            "constant 1 lies outside the message");
  EXPECT_EQ(refused([](auto& m) { m.constants[0].scale = 19; }), "constant 0 has a wrong scale");
  EXPECT_EQ(refused([](auto& m) { m.constants[0].kind = 8; }), "constant 0 has an unknown type");
  EXPECT_EQ(refused([](auto& m) { m.items[1].aggregate = 7; }),
            "operator 3 (group by): item 1 is an unknown aggregate");
  EXPECT_EQ(refused([](auto& m) { m.items[1].reserved2 = 7; }),
            "operator 3 (group by): item 1 has a reserved byte that is not 0");
}

/// What is said of a condition.
std::string condition(
    const std::function<PipelineBuilder::NodeId(PipelineBuilder& builder)>& make) {
  PipelineBuilder builder;
  builder.filter(make(builder));
  const auto bytes = builder.finish();
  if (!bytes) return bytes.error().message();
  const auto pipeline = check_pipeline(*bytes, schema_of_six_types());
  return pipeline ? "" : pipeline.error().message();
}

TEST(Pipeline, RefusesTypesThatDoNotFit) {
  EXPECT_EQ(condition([](auto& b) { return b.column(0); }),
            "operator 1 (filter): its condition is integer, not boolean");
  EXPECT_EQ(
      condition([](auto& b) { return b.binary(ExpressionKind::add, b.column(0), b.column(2)); }),
      "operator 1 (filter): '+' takes numbers, not text");
  EXPECT_EQ(
      condition([](auto& b) { return b.binary(ExpressionKind::equal, b.column(2), b.column(0)); }),
      "operator 1 (filter): text is compared with integer");
  EXPECT_EQ(
      condition([](auto& b) { return b.binary(ExpressionKind::less, b.column(5), b.column(1)); }),
      "operator 1 (filter): date is compared with decimal");
  EXPECT_EQ(condition([](auto& b) { return b.like(b.column(0), text_constant("x")); }),
            "operator 1 (filter): 'like' takes text, not integer");
  EXPECT_EQ(condition([](auto& b) { return b.like(b.column(2), integer_constant(1)); }),
            "operator 1 (filter): 'like' takes text as its pattern, not integer");
  EXPECT_EQ(condition([](auto& b) { return b.like(b.column(2), text_constant("\xFF")); }),
            "operator 1 (filter): the pattern is not UTF-8");
  EXPECT_EQ(condition([](auto& b) { return b.matches(b.column(1), text_constant("x")); }),
            "operator 1 (filter): '~' takes text, not decimal");
  EXPECT_EQ(condition([](auto& b) { return b.matches(b.column(2), integer_constant(1)); }),
            "operator 1 (filter): '~' takes text as its pattern, not integer");
  EXPECT_EQ(condition([](auto& b) {
              return b.binary(ExpressionKind::logical_and, b.column(4), b.column(0));
            }),
            "operator 1 (filter): 'and' takes conditions, not integer");
  EXPECT_EQ(
      condition([](auto& b) {
        const Constant nine = decimal_constant(9, 17);
        const auto product = b.binary(ExpressionKind::multiply, b.column(1), b.constant(nine));
        return b.binary(ExpressionKind::less, product, b.column(1));
      }),
      "operator 1 (filter): the product would have 19 digits behind the point; it may have 18");
}

/// Takes none.
class NoRegexes final : public RegexCompiler {
 public:
  std::expected<std::shared_ptr<const Regex>, std::string> compile(std::string_view pattern,
                                                                   RegexOptions options) override {
    return std::unexpected(std::string(pattern) + (options.ignore_case ? " folded" : "") +
                           " is bad");
  }
};

TEST(Pipeline, CharColumnsAreComparedWithoutBlanks) {
  const Schema chars = *Schema::parse("a char(4), b text(4)");
  PipelineBuilder builder;
  const auto equal = [&](std::size_t column, const char* text) {
    builder.filter(builder.binary(ExpressionKind::equal, builder.column(column),
                                  builder.constant(text_constant(text))));
  };
  equal(0, "x  ");
  equal(1, "x  ");
  equal(0, "   ");
  const Constant several[] = {text_constant(" y "), null_constant(ValueKind::text),
                              text_constant("z")};
  builder.filter(builder.in(builder.column(0), several));
  const auto low = builder.constant(text_constant("a "));
  const auto high = builder.constant(text_constant("b  "));
  builder.filter(builder.between(builder.column(0), low, high));
  builder.filter(builder.like(builder.column(0), text_constant("x ")));
  const PipelineBuilder::NodeId items[] = {builder.constant(text_constant("x "))};
  builder.project(items);
  const auto pipeline = check_pipeline(*builder.finish(), chars);
  ASSERT_TRUE(pipeline);
  const auto filter = [&](std::size_t i) {
    return expression_text(*pipeline, pipeline->filters.at(i).node);
  };
  EXPECT_EQ(filter(0), "a = 'x'");
  EXPECT_EQ(filter(1), "b = 'x  '");
  EXPECT_EQ(filter(2), "a = ''");
  EXPECT_EQ(filter(3), "a in (' y', null, 'z')");
  EXPECT_EQ(filter(4), "a between 'a' and 'b'");
  EXPECT_EQ(filter(5), "a like 'x '");
  EXPECT_EQ(expression_text(*pipeline, pipeline->items.at(0).node), "'x '");
  EXPECT_EQ(pipeline->constants.size(), 20U);  // those ten, once more
}

TEST(Pipeline, RegularExpressionsAreCompiledApart) {
  PipelineBuilder builder;
  builder.filter(builder.like(builder.column(2), text_constant("x%")));
  builder.filter(builder.matches(builder.column(2), text_constant("^x"), true));
  builder.filter(builder.matches(builder.column(2), null_constant(wire::ValueKind::text)));
  auto pipeline = check_pipeline(*builder.finish(), schema_of_six_types());
  ASSERT_TRUE(pipeline);
  EXPECT_EQ(expression_text(*pipeline, pipeline->filters[1].node), "c ~* '^x'");
  NoRegexes none;
  EXPECT_EQ(compile_regexes(*pipeline, none).error().message(),
            "operator 2 (filter): ^x folded is bad");
  LiteralRegexes literal;
  ASSERT_TRUE(compile_regexes(*pipeline, literal));
  EXPECT_TRUE(BatchProgram(*pipeline).has_regexes());

  PipelineBuilder items;
  const PipelineBuilder::NodeId values[] = {items.matches(items.column(2), text_constant("a"))};
  items.project(values);
  auto projected = check_pipeline(*items.finish(), schema_of_six_types());
  ASSERT_TRUE(projected);
  EXPECT_EQ(compile_regexes(*projected, none).error().message(), "operator 1 (project): a is bad");
}

TEST(Pipeline, KeepsItsLimits) {
  const auto many_regexes = [](int count) {
    return condition([=](auto& b) {
      auto node = b.matches(b.column(2), text_constant("x"));
      for (int i = 1; i < count; ++i) {
        node =
            b.binary(ExpressionKind::logical_or, node, b.matches(b.column(2), text_constant("x")));
      }
      return node;
    });
  };
  EXPECT_EQ(many_regexes(16), "");
  EXPECT_EQ(many_regexes(17), "there are more than 16 regular expressions");
  EXPECT_EQ(condition([](auto& b) {
              auto node = b.column(4);
              for (int i = 0; i < 31; ++i) node = b.unary(ExpressionKind::logical_not, node);
              return node;
            }),
            "");
  EXPECT_EQ(condition([](auto& b) {
              auto node = b.column(4);
              for (int i = 0; i < 32; ++i) node = b.unary(ExpressionKind::logical_not, node);
              return node;
            }),
            "an expression is more than 32 deep");
  EXPECT_EQ(condition([](auto& b) {
              const std::vector<Constant> many(2049, integer_constant(1));
              return b.in(b.column(0), many);
            }),
            "there are more than 2048 constants");
  EXPECT_EQ(condition([](auto& b) {
              const std::vector<Constant> many(64, text_constant(std::string(1024, 'x')));
              return b.in(b.column(2), many);
            }),
            "the pipeline has more than 64 KiB");
  PipelineBuilder operators;
  for (int i = 0; i < 63; ++i) operators.filter(operators.column(4));
  EXPECT_EQ(operators.finish().error().message(), "there are more than 64 operators");
  PipelineBuilder nodes;
  std::vector<PipelineBuilder::NodeId> values;
  for (int i = 0; i < 257; ++i) values.push_back(nodes.column(0));
  nodes.project(values);
  EXPECT_EQ(nodes.finish().error().message(), "there are more than 256 expression nodes");
}

TEST(Pipeline, EveryByteOfTheMessageIsLookedAt) {
  const auto bytes = *sample().finish();
  std::size_t refusals = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    auto changed = bytes;
    changed[at] ^= std::byte{0x80};
    const auto decoded = decode_pipeline(changed);
    if (decoded) {
      EXPECT_EQ(encode_pipeline(*decoded), changed) << "byte " << at;
    } else {
      ++refusals;
    }
  }
  EXPECT_GT(refusals, bytes.size() / 2);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_pipeline(std::span(bytes).first(size))) << size;
  }
}

TEST(Pipeline, RandomOnesSurviveTheirBytes) {
  base::Random random(base::seed_from_environment(3));
  int sent = 0;
  for (int round = 0; round < 500; ++round) {
    const Schema any = random_small_schema(random);
    const auto bytes = random_builder(random, any).finish();
    if (!bytes) continue;
    const auto message = decode_pipeline(*bytes);
    ASSERT_TRUE(message);
    EXPECT_EQ(encode_pipeline(*message), *bytes);
    sent += check_pipeline(*message, any) ? 1 : 0;
  }
  EXPECT_GT(sent, 300);
}

}  // namespace
}  // namespace espalier::table
