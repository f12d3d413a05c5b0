// SPDX-License-Identifier: Apache-2.0
// `espalier-bench table`: queries of tables, executed beside the memory and elsewhere.
//
// An experiment is a list of queries, each answered in several ways, which are the targets:
//
//   read     the whole table by one core, without work; copy: copied. The baseline of the others.
//   stage    the executor alone, into 64 KiB that are always free: a node's part of the work
//   scalar   the same without SIMD (select)
//   absl     absl::flat_hash_map or _set by hand (group, distinct): the same rows of the result
//   re2      RE2 by hand, string by string (regex); evp: OpenSSL's EVP, decrypting only (decrypt)
//   local    table and work at the client, result in its memory                       [LCPU]
//   remote   a process executes it, keeps the result, then sends it by a socket       [RCPU]
//   pull     every row is read from a node, by READs over shm, and the work done at the client
//   pushed   a node executes it and streams the result                                [FV]
//   chunks   the result comes to the client by messages, and is only counted (project, select)
//   buffers  the same, written into the client's memory (shm)
//
//   response  all columns of few rows: how long an answer takes               [Farview Fig. 6]
//   project   three columns of long rows, by lines and by rows                [Farview Fig. 7]
//   select    all columns of a share of the rows                              [Farview Fig. 8]
//   distinct  the values of a column                                          [Farview Fig. 9a]
//   group     sums by the values of a column                                  [Farview Fig. 9b, c]
//   regex     strings of 256 bytes that match a regular expression           [Farview Fig. 10]
//   decrypt   as select, of encrypted rows                                   [Farview Fig. 11]
//   clients   several clients at a time, each with the distinct query         [Farview Fig. 12]
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/node_transport.hpp"
#include "bench/point_run.hpp"
#include "bench/table_data.hpp"

namespace espalier::bench {

struct TableOptions : PointOptions {
  static constexpr const char* kBench = "table";
  static constexpr const char* kSummary = "queries beside the memory, and elsewhere";

  std::vector<std::string> targets;                    ///< none: all
  std::uint64_t table_bytes = std::uint64_t{1} << 30;  ///< about
  std::vector<NodeTransport> transports{NodeTransport::unix_socket, NodeTransport::shm};
  std::vector<std::uint64_t> groups{16, 1024, 65536, 1 << 20};  ///< from kGroupCounts
  std::vector<std::uint32_t> clients{1, 6};
  std::uint64_t short_queries = 200;  ///< response: how many of each

  void declare(OptionRows& rows);
  [[nodiscard]] std::vector<ExperimentRow> experiment_rows() const;
};

/// The queries of an experiment.
std::vector<TableQuery> table_queries(const TableOptions& options, std::string_view experiment);

/// Points of the targets read, copy, stage, scalar, absl, re2 and evp.
std::vector<MeasuredPoint> stage_points(const TableOptions& options, std::string_view experiment);
/// Points of the targets local, remote, pull, pushed, chunks and buffers.
std::vector<MeasuredPoint> way_points(const TableOptions& options, std::string_view experiment);
/// The points of --experiment clients.
std::vector<MeasuredPoint> client_points(const TableOptions& options);

}  // namespace espalier::bench
