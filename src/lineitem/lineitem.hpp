// SPDX-License-Identifier: Apache-2.0
// Rows of the table lineitem: schema, ranges and dependencies follow the TPC-H specification
// (version 3, 4.2.3). The numbers are drawn by the generator of this file and the comments are
// words of its own, so results are not comparable with published ones; no result of this is a TPC
// result.
//
// One seed and scale give the same rows on every machine.
//
// Thread: one generator belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/random.hpp"

namespace espalier::lineitem {

/// Its columns, as `espalier table create` takes them.
inline constexpr std::string_view kSchema =
    "l_orderkey i64 not null, l_partkey i32 not null, l_suppkey i32 not null, "
    "l_linenumber i32 not null, l_quantity decimal(12,2) not null, "
    "l_extendedprice decimal(12,2) not null, l_discount decimal(12,2) not null, "
    "l_tax decimal(12,2) not null, l_returnflag char(1) not null, "
    "l_linestatus char(1) not null, l_shipdate date not null, l_commitdate date not null, "
    "l_receiptdate date not null, l_shipinstruct char(25) not null, "
    "l_shipmode char(10) not null, l_comment text(44) not null";

/// Dates are days since 1970-01-01, money and shares are hundredths.
struct Row {
  std::int64_t orderkey = 0;
  std::int32_t partkey = 0;
  std::int32_t suppkey = 0;
  std::int32_t linenumber = 0;
  std::int32_t quantity = 0;  ///< whole ones
  std::int64_t extendedprice = 0;
  std::int32_t discount = 0;
  std::int32_t tax = 0;
  char returnflag = ' ';
  char linestatus = ' ';
  std::int32_t shipdate = 0;
  std::int32_t commitdate = 0;
  std::int32_t receiptdate = 0;
  std::string_view shipinstruct;
  std::string_view shipmode;
  std::string comment;
};

class Generator {
 public:
  static constexpr double kScaleMin = 0.0001;
  static constexpr double kScaleMax = 100;

  /// Scale 1 has 1.5 million orders, of one to seven rows each: 6 million, about.
  /// Requires: the scale is within its bounds.
  Generator(double scale, std::uint64_t seed);

  /// The next row, there until the next call; null: there is none.
  const Row* next();

 private:
  void begin_order();

  base::Random random_;
  std::uint64_t orders_;
  std::uint64_t parts_;
  std::uint64_t suppliers_;
  std::uint64_t order_ = 0;  // that were begun
  std::int32_t order_date_ = 0;
  std::int32_t lines_left_ = 0;
  Row row_;
};

/// The line that names the columns.
void append_csv_header(std::string& out);
void append_csv(const Row& row, std::string& out);

}  // namespace espalier::lineitem
