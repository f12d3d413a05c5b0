// SPDX-License-Identifier: Apache-2.0
#include "bench/log_commands.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "bench/command_options.hpp"
#include "bench/run_log.hpp"
#include "bench/run_recovery.hpp"
#include "bench/run_transaction.hpp"

namespace espalier::bench {
namespace {

constexpr const char* kFolderHelp =
    "where files are made, on the disk that is to be measured; they are removed at the end "
    "(default: the folder for temporary files)";

void add_log(CLI::App& app, const Output& output, cmdline::Action& chosen) {
  CLI::App& command =
      *app.add_subcommand("log", "commits to a disk, and writes that wait for them");
  const auto options = std::make_shared<LogBenchOptions>();
  add_list(command, "--experiment", options->experiments,
           log_experiment_names() + "; by default all");
  add_choices(command, "--target", options->targets, parse_log_target,
              "log, rocksdb, disk, and model_pmem, a log in mapped files at /dev/shm; the first "
              "three by default (commit)");
  command.add_option("--dir", options->dir, kFolderHelp);
  add_numbers(command, "--record-bytes", options->record_bytes,
              "sizes of records; 100,4096,65536 by default (commit; apart: the first)");
  add_numbers(command, "--writers", options->writers, "threads; 1,2,16 by default (commit)");
  add_numbers(command, "--in-flight", options->in_flight,
              "records of each writer that wait for the disk; 1,8,256 by default (commit, log "
              "alone)");
  add_numbers(command, "--writes", options->writes,
              "of the log, that are under way at a time; 4 by default (commit, apart)");
  add_numbers(command, "--gap-us", options->gap_us,
              "microseconds from one record to the next; 20,50,100 by default (apart)");
  add_number(command, "--ops", options->ops,
             "records of a measurement, of long ones fewer (commit); adds; gets (beside)");
  add_number(command, "--keys", options->keys, "pairs that are loaded (pairs, beside)");
  add_number(command, "--value-bytes", options->value_bytes, "of each value (pairs, beside)");
  add_number(command, "--pairs-in-flight", options->pairs_in_flight,
             "requests of the client that are in flight (pairs, adds)");
  add_numbers(command, "--placed-bytes", options->placed_bytes,
              "sizes of records; 64,256,1024 by default (placement)");
  add_numbers(command, "--region-bytes", options->region_bytes,
              "of the memory that they go to; 4194304,67108864 by default (placement)");
  add_number(command, "--cache-bytes", options->cache_bytes, "of the modelled cache (placement)");
  command.add_flag("--stop-disk", options->stop_disk,
                   "freeze the file system that is mounted at --dir for as long as a point takes: "
                   "nothing else may use it (beside)");
  add_point_options(command, *options);
  choose(command, options, output, chosen, run_log);
}

void add_recovery(CLI::App& app, const Output& output, cmdline::Action& chosen) {
  CLI::App& command = *app.add_subcommand("recovery", "the start of a node that has much to read");
  const auto options = std::make_shared<RecoveryBenchOptions>();
  command.add_option("--dir", options->dir, kFolderHelp);
  add_numbers(command, "--keys", options->keys, "pairs; 100000,1000000 by default");
  add_numbers(command, "--maps", options->maps, "that have them; 1,2 by default");
  add_numbers(command, "--threads", options->threads, "that apply what is read; 1,2 by default");
  add_choices(command, "--from", options->from, parse_recovery_from,
              "log, checkpoint; both by default");
  add_number(command, "--value-bytes", options->value_bytes, "of each value");
  add_point_options(command, *options);
  choose(command, options, output, chosen, run_recovery);
}

std::optional<LineWay> parse_line_way(std::string_view text) {
  for (const LineWay way : {LineWay::one_request, LineWay::one_by_one}) {
    if (text == name(way)) return way;
  }
  return std::nullopt;
}

void add_transaction(CLI::App& app, const Output& output, cmdline::Action& chosen) {
  CLI::App& command = *app.add_subcommand(
      "transaction", "transactions through chains of nodes and of one store, beside other ways");
  const auto options = std::make_shared<TransactionBenchOptions>();
  add_list(command, "--experiment", options->experiments,
           transaction_experiment_names() + "; by default all");
  add_choices(command, "--way", options->ways, parse_line_way,
              "one-request, one-by-one; both by default (line)");
  add_choices(command, "--transport", options->transports, parse_node_transport,
              "shm, roce-memif, roce-udp; shm,roce-memif by default (line)");
  add_numbers(command, "--nodes", options->nodes, "of the chain; 2,3 by default (line, nodes)");
  add_numbers(command, "--value-bytes", options->value_bytes,
              "of each value; 64,1024 by default (line; ycsb, nodes: the first)");
  add_choices(command, "--shape", options->shapes, parse_shape,
              "READS+WRITES of a transaction; 0+1,4+2 by default (line)");
  add_choices(command, "--placement", options->placements, fabric::parse_placement_policy,
              "of records in persistent memory of the next replica: adaptive, cache, memory; "
              "adaptive by default (line)");
  add_number(command, "--hop-ns", options->hop_ns,
             "modelled nanoseconds of each hop, besides what its transport takes (line)");
  add_number(command, "--pairs", options->pairs, "that the chain has (line)");
  add_choices(command, "--target", options->targets, parse_transaction_target,
              "embedded, rocksdb; both by default (bank, ycsb)");
  add_number(command, "--accounts", options->accounts, "of the bank (bank)");
  add_number(command, "--keys", options->keys, "of the store (ycsb); of each map (clock)");
  add_number(command, "--length", options->length, "keys of the longest transactions (ycsb)");
  add_numbers(command, "--threads", options->threads, "1,2 by default (bank, ycsb, clock)");
  add_number(command, "--ops", options->ops,
             "transactions of a measurement; requests (clock), puts (nodes)");
  command.add_option("--dir", options->dir, kFolderHelp);
  command.add_option("--etcd", options->etcd,
                     "endpoints that keep chains, HOST:PORT,HOST:PORT; by default files do (nodes, "
                     "failover)");
  add_number(command, "--in-flight", options->in_flight, "puts of the client (nodes)");
  add_numbers(
      command, "--fence-ms", options->fence_ms,
      "after so long a silent member is left out; 1000,400 by default (failover; nodes: the "
      "first)");
  add_number(command, "--puts", options->puts,
             "of the client that counts; the head is killed after half of them (failover)");
  add_point_options(command, *options);
  choose(command, options, output, chosen, run_transaction);
}

}  // namespace

void add_log_commands(CLI::App& app, const Output& output, cmdline::Action& chosen) {
  add_log(app, output, chosen);
  add_recovery(app, output, chosen);
  add_transaction(app, output, chosen);
}

}  // namespace espalier::bench
