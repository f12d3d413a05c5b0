// SPDX-License-Identifier: Apache-2.0
#include "bench/log_commands.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "bench/command_options.hpp"
#include "bench/run_log.hpp"
#include "bench/run_recovery.hpp"

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
             "records of a measurement, of long ones fewer; adds; gets (beside)");
  add_number(command, "--keys", options->keys, "pairs that are loaded (pairs, beside)");
  add_number(command, "--value-bytes", options->value_bytes, "of each value (pairs, beside)");
  add_number(command, "--pairs-in-flight", options->pairs_in_flight,
             "requests of the client that are in flight (pairs, adds)");
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

}  // namespace

void add_log_commands(CLI::App& app, const Output& output, cmdline::Action& chosen) {
  add_log(app, output, chosen);
  add_recovery(app, output, chosen);
}

}  // namespace espalier::bench
