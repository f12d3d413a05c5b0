// SPDX-License-Identifier: Apache-2.0
#include "lineitem/lineitem.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <vector>

#include "base/assert.hpp"

namespace espalier::lineitem {
namespace {

using std::chrono::sys_days;
using std::chrono::year;

constexpr std::int32_t days_of(std::chrono::year_month_day date) {
  return static_cast<std::int32_t>(sys_days(date).time_since_epoch().count());
}
constexpr std::int32_t kStartDate = days_of(year(1992) / 1 / 1);
constexpr std::int32_t kEndDate = days_of(year(1998) / 12 / 31);
constexpr std::int32_t kCurrentDate = days_of(year(1995) / 6 / 17);
constexpr std::int32_t kLastOrderDate = kEndDate - 151;

constexpr std::array<std::string_view, 4> kInstructions{"DELIVER IN PERSON", "COLLECT COD", "NONE",
                                                        "TAKE BACK RETURN"};
constexpr std::array<std::string_view, 7> kModes{"REG AIR", "AIR",  "RAIL", "SHIP",
                                                 "TRUCK",   "MAIL", "FOB"};
constexpr std::array<std::string_view, 24> kWords{
    "amber",  "brave",   "calm",    "copper", "crates",  "drift",  "early",  "eastern",
    "gently", "harbour", "kettles", "lately", "lamps",   "linger", "marble", "northern",
    "orders", "parcels", "quickly", "rest",   "rollers", "seldom", "silver", "wait"};

constexpr std::size_t kCommentMin = 10;
constexpr std::size_t kCommentMax = 43;

std::uint64_t scaled(double scale, double count) {
  return static_cast<std::uint64_t>(std::max(1.0, std::round(scale * count)));
}

/// Of every 32 keys the first eight are used.
std::int64_t order_key(std::uint64_t order) {
  return static_cast<std::int64_t>(order / 8 * 32 + order % 8 + 1);
}

std::int64_t retail_price(std::int64_t part) {
  return 90'000 + part / 10 % 20'001 + 100 * (part % 1000);
}

/// One of the four suppliers that a part has.
std::uint64_t supplier_of(std::uint64_t part, std::uint64_t which, std::uint64_t suppliers) {
  return (part + which * (suppliers / 4 + (part - 1) / suppliers)) % suppliers + 1;
}

void append_number(std::string& out, std::int64_t value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, end);
}

void append_hundredths(std::string& out, std::int64_t value) {
  append_number(out, value / 100);
  out += '.';
  out += static_cast<char>('0' + value % 100 / 10);
  out += static_cast<char>('0' + value % 10);
}

using DateText = std::array<char, 10>;

/// All dates that rows have, from kStartDate on, as ISO writes them.
std::vector<DateText> date_texts() {
  std::vector<DateText> texts;
  for (std::int32_t day = kStartDate; day <= kEndDate; ++day) {
    const std::chrono::year_month_day date{sys_days{std::chrono::days{day}}};
    DateText text{};
    const auto write = [&](std::size_t at, std::size_t digits, unsigned value) {
      for (std::size_t i = digits; i > 0; --i, value /= 10) {
        text[at + i - 1] = static_cast<char>('0' + value % 10);
      }
    };
    write(0, 4, static_cast<unsigned>(static_cast<int>(date.year())));
    write(5, 2, static_cast<unsigned>(date.month()));
    write(8, 2, static_cast<unsigned>(date.day()));
    text[4] = text[7] = '-';
    texts.push_back(text);
  }
  return texts;
}

void append_date(std::string& out, std::int32_t day) {
  static const std::vector<DateText> texts = date_texts();
  const DateText& text = texts.at(static_cast<std::size_t>(day - kStartDate));
  out.append(text.data(), text.size());
}

void draw_comment(base::Random& random, std::string& comment) {
  const std::size_t bytes = random.between(kCommentMin, kCommentMax);
  comment.clear();
  while (comment.size() < bytes) {
    if (!comment.empty()) comment += ' ';
    comment += kWords[random.below(kWords.size())];
  }
  comment.resize(bytes);
  if (comment.back() == ' ') comment.back() = '.';
}

}  // namespace

Generator::Generator(double scale, std::uint64_t seed)
    : random_(seed),
      orders_(scaled(scale, 1'500'000)),
      parts_(scaled(scale, 200'000)),
      suppliers_(scaled(scale, 10'000)) {
  ESPALIER_ASSERT(scale >= kScaleMin && scale <= kScaleMax);
}

void Generator::begin_order() {
  row_.orderkey = order_key(order_++);
  row_.linenumber = 0;
  lines_left_ = static_cast<std::int32_t>(random_.between(1, 7));
  order_date_ = static_cast<std::int32_t>(random_.between(kStartDate, kLastOrderDate));
}

const Row* Generator::next() {
  if (lines_left_ == 0) {
    if (order_ == orders_) return nullptr;
    begin_order();
  }
  --lines_left_;
  const auto between = [this](std::uint64_t low, std::uint64_t high) {
    return static_cast<std::int32_t>(random_.between(low, high));
  };
  const std::uint64_t part = random_.between(1, parts_);
  ++row_.linenumber;
  row_.partkey = static_cast<std::int32_t>(part);
  row_.suppkey = static_cast<std::int32_t>(supplier_of(part, random_.below(4), suppliers_));
  row_.quantity = between(1, 50);
  row_.extendedprice = row_.quantity * retail_price(row_.partkey);
  row_.discount = between(0, 10);
  row_.tax = between(0, 8);
  row_.shipdate = order_date_ + between(1, 121);
  row_.commitdate = order_date_ + between(30, 90);
  row_.receiptdate = row_.shipdate + between(1, 30);
  row_.returnflag = row_.receiptdate > kCurrentDate ? 'N' : random_.below(2) == 0 ? 'R' : 'A';
  row_.linestatus = row_.shipdate > kCurrentDate ? 'O' : 'F';
  row_.shipinstruct = kInstructions[random_.below(kInstructions.size())];
  row_.shipmode = kModes[random_.below(kModes.size())];
  draw_comment(random_, row_.comment);
  return &row_;
}

void append_csv_header(std::string& out) {
  out +=
      "l_orderkey,l_partkey,l_suppkey,l_linenumber,l_quantity,l_extendedprice,l_discount,l_tax,"
      "l_returnflag,l_linestatus,l_shipdate,l_commitdate,l_receiptdate,l_shipinstruct,l_shipmode,"
      "l_comment\n";
}

void append_csv(const Row& row, std::string& out) {
  for (const std::int64_t key : {row.orderkey, std::int64_t{row.partkey}, std::int64_t{row.suppkey},
                                 std::int64_t{row.linenumber}}) {
    append_number(out, key);
    out += ',';
  }
  for (const std::int64_t hundredths : {std::int64_t{row.quantity} * 100, row.extendedprice,
                                        std::int64_t{row.discount}, std::int64_t{row.tax}}) {
    append_hundredths(out, hundredths);
    out += ',';
  }
  for (const char letter : {row.returnflag, row.linestatus}) {
    out += letter;
    out += ',';
  }
  for (const std::int32_t day : {row.shipdate, row.commitdate, row.receiptdate}) {
    append_date(out, day);
    out += ',';
  }
  out += row.shipinstruct;
  out += ',';
  out += row.shipmode;
  out += ',';
  out += row.comment;
  out += '\n';
}

}  // namespace espalier::lineitem
