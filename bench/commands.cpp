// SPDX-License-Identifier: Apache-2.0
#include "bench/commands.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/command_options.hpp"
#include "bench/ethernet_model.hpp"
#include "bench/figure_points.hpp"
#include "bench/log_commands.hpp"
#include "bench/run_device.hpp"
#include "bench/run_fabric.hpp"
#include "bench/run_hash.hpp"
#include "bench/run_in_network.hpp"
#include "bench/run_inference.hpp"
#include "bench/run_latency.hpp"
#include "bench/run_memory.hpp"
#include "bench/run_one_sided.hpp"
#include "bench/run_place.hpp"
#include "bench/run_rings.hpp"
#include "bench/run_rpc.hpp"
#include "bench/run_sequencer.hpp"
#include "bench/run_switch.hpp"
#include "bench/run_table.hpp"
#include "bench/run_tree.hpp"
#include "bench/run_ycsb.hpp"
#include "cmdline/completion.hpp"
#include "cmdline/number_option.hpp"

#ifndef ESPALIER_VERSION
#define ESPALIER_VERSION "unknown"
#endif

namespace espalier::bench {
namespace {

constexpr std::string_view kFooter =
    "Exit codes: 0 done; 1 answers differ, or a benchmark cannot run; 2 the command line is "
    "wrong.\n"
    "Examples:\n"
    "  espalier-bench ycsb --target embedded,absl --workload b --keys 1000000\n"
    "  espalier-bench ycsb --target node --node-address unix:/tmp/node.sock --json\n"
    "  espalier-bench tree --experiment scan-length\n"
    "  espalier-bench rpc --help\n";

constexpr const char* kWorkloadHelp =
    "a b c d e f (YCSB), cloud, get, scan, mixed, load, load-ascending, erase";

std::optional<bool> parse_switch(std::string_view text) {
  if (text == "on") return true;
  if (text == "off") return false;
  return std::nullopt;
}

// Of those that take a node's address. All connections of the process look there; a path is no
// secret.
void add_secret_file(CLI::App& command) {
  command.add_option_function<std::string>(
      "--secret-file",
      [](const std::string& path) { setenv("ESPALIER_SECRET_FILE", path.c_str(), 1); },
      "file with the name and secret by which to come to that node, if it is one of a network "
      "(default: ESPALIER_SECRET_FILE)");
}

// What ycsb, tree and latency share.
void add_common_options(CLI::App& command, YcsbOptions& options) {
  add_choices(
      command, "--target", options.targets, parse_target,
      "embedded, node, one-sided, device, absl, rocksdb, lmdb, redis; several with commas take "
      "turns");
  add_choice(command, "--key-set", options.key_source, parse_key_source, kKeySourceNames);
  command.add_option("--key-file", options.key_file, "file with a key on each line");
  add_number(command, "--keys", options.keys, "keys to load; from files at most so many, 0: all");
  add_number(command, "--key-bytes", options.key_bytes, "length of random keys");
  add_number(command, "--value-bytes", options.value_bytes, "length of values");
  command.add_flag("--draw-values", options.draw_values,
                   "values are of 0 to --value-bytes, each drawn by itself");
  add_number(command, "--threads", options.threads, "thread t runs on the t-th core");
  command.add_flag("--peers-on-one-thread", options.peers_on_one_thread,
                   "peers run all threads' requests on one thread, without a lock");
  add_number(command, "--in-flight", options.in_flight,
             "requests in flight on each thread; 1: one call at a time");
  add_number(command, "--ops", options.ops,
             "operations of all threads; 0: as the workload suggests");
  add_number(command, "--seed", options.seed, "same seed, same requests");
  add_number(command, "--seconds", options.seconds, "stop measuring after so long; 0: never");
  add_number(command, "--repeats", options.repeats, "rounds; medians are printed");
  add_choice(command, "--versions", options.versions, parse_switch,
             "on, off (embedded and node only)");
  add_number(command, "--node-bytes", options.node_bytes, "node size (embedded and node only)");
  add_number(command, "--log-bytes", options.log_bytes,
             "log block of a leaf (embedded and node only)");
  add_number(command, "--subscribers", options.subscribers,
             "threads that follow the map's mapping feed meanwhile (embedded only)");
  add_number(command, "--node-cores", options.node_cores,
             "workers of the node (node and one-sided only)");
  command.add_option("--node-address", options.node_address,
                     "a node that runs already, as unix:PATH or an address of the fabric; else one "
                     "is started for the run");
  add_secret_file(command);
  add_choice(
      command, "--transport", options.transport, parse_node_transport,
      node_transport_names() + " (the run's own node only); unix by default, of one-sided shm");
  command.add_option("--redis-address", options.redis_address,
                     "a Redis that runs already and is empty, as unix:PATH or tcp:HOST:PORT; else "
                     "one is started for the run");
  command.add_flag("--redis-tcp", options.redis_tcp,
                   "the run's own Redis listens at a TCP port of the loopback interface, not at a "
                   "UNIX socket");
  add_output_options(command, options);
}

void add_ycsb(CLI::App& app, const Output& output, cmdline::Action& chosen) {
  CLI::App& command = *app.add_subcommand("ycsb", "YCSB and other workloads, beside peers");
  const auto options = std::make_shared<YcsbOptions>();
  add_choice(command, "--workload", options->workload, parse_workload, kWorkloadHelp);
  add_choice(command, "--distribution", options->distribution, parse_distribution,
             "uniform, zipfian, latest; by default the workload's own");
  add_number(command, "--scan-items", options->scan_items, "items of each scan (workload scan)");
  add_number(command, "--scan-share", options->shares.scans, "share of scans (workload cloud)");
  add_number(command, "--write-share", options->shares.writes, "share of updates (workload mixed)");
  add_common_options(command, *options);
  choose(command, options, output, chosen, run_ycsb);
}

void add_tree(CLI::App& app, const Output& output, cmdline::Action& chosen) {
  CLI::App& command = *app.add_subcommand("tree", "the map's speed, one parameter at a time");
  const auto options = std::make_shared<TreeOptions>();
  std::string names;
  for (const Experiment experiment : all_experiments()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name(experiment));
  }
  add_choices(command, "--experiment", options->experiments, parse_experiment,
              names + "; by default all");
  add_common_options(command, options->base);
  choose(command, options, output, chosen, run_tree);
}

void add_memory(CLI::App& app, const Output& output, cmdline::Action& chosen) {
  CLI::App& command = *app.add_subcommand("memory", "latency and bandwidth of this machine");
  const auto options = std::make_shared<MemoryOptions>();
  add_number(command, "--bytes", options->bytes_max, "the largest block");
  add_number(command, "--seconds", options->seconds, "for each measurement");
  add_number(command, "--seed", options->seed, "of the random chains");
  add_output_options(command, *options);
  choose(command, options, output, chosen, run_memory);
}

void add_in_network(CLI::App& app, const Output& output, cmdline::Action& chosen) {
  CLI::App& command =
      *app.add_subcommand("in-network", "READs that are left when switches know the tree's top");
  const auto options = std::make_shared<InNetworkOptions>();
  add_list(command, "--experiment", options->experiments, figure_names() + "; by default all");
  add_number(command, "--keys", options->keys, "of the tree; scale: half to five times as many");
  add_number(command, "--fanout", options->fanout, "children of a node");
  add_number(command, "--ranges", options->ranges, "of the fat root");
  add_number(command, "--sets", options->sets, "layers of nodes below it");
  add_number(command, "--nodes-per-set", options->nodes_per_set, "nodes in each");
  add_number(command, "--model-trip", options->model_trip_ns,
             "nanoseconds of a trip, for model_... (16100 as the paper has)");
  add_number(command, "--seed", options->seed, "of how ranks are scattered over keys");
  command.add_flag("--json", options->json, "JSON lines instead of a table");
  choose(command, options, output, chosen, run_in_network);
}

void add_switch(CLI::App& app, const Output& output, cmdline::Action& chosen) {
  CLI::App& command =
      *app.add_subcommand("switch", "what a switch saves that knows the tree's top, and costs");
  const auto options = std::make_shared<SwitchRunOptions>();
  add_list(command, "--experiment", options->experiments,
           switch_experiment_names() + "; by default all, with --node-address gets");
  add_list(command, "--figure", options->figures,
           "hops: the points of these of the paper's figures, " + figure_names() +
               "; by default the one point that the options name; fat-tree: " +
               ethernet_figure_names() + "; by default all");
  command.add_option("--node-address", options->node_address,
                     "where clients come to a switch that runs, as roce+memif:PATH (default: node, "
                     "switch and controller of the run's own)");
  add_secret_file(command);
  command.add_option("--map", options->map, "the map there, which has the keys");
  add_number(command, "--keys", options->keys,
             "of the run's own map or tree; of another map, as many at most");
  add_number(command, "--value-bytes", options->value_bytes,
             "of the run's own map; hops: of its leaves, 4000 at most");
  add_number(command, "--node-bytes", options->node_bytes, "of the run's own map");
  add_number(command, "--ops", options->ops,
             "gets and hops: gets of each way in each round; parts: scans");
  add_number(command, "--range-keys", options->range_keys, "parts: keys of each scan");
  add_number(command, "--in-flight", options->in_flight, "gets in flight, for the rate");
  add_number(command, "--frames", options->frames,
             "function and forward: frames of each kind in each round");
  add_number(command, "--updates", options->updates, "install: nodes that move");
  add_number(command, "--installs", options->installs,
             "install: compilations, and whole tables that are replaced");
  add_number(command, "--model-trip", options->model_trip_ns,
             "nanoseconds of a trip, for model_... (16100 as the paper has)");
  add_number(command, "--rounds", options->rounds, "in which the ways take turns");
  add_number(command, "--ranges", options->ranges, "of the fat root");
  add_number(command, "--sets", options->sets, "layers of nodes below it");
  add_number(command, "--nodes-per-set", options->nodes_per_set, "nodes in each");
  add_number(command, "--writes", options->write_percent,
             "of 100 requests, in a way of its own; 0: none");
  add_number(command, "--delay", options->delay_ms,
             "milliseconds between two looks of the run's own controller at what has moved");
  add_number(command, "--seed", options->seed, "of the keys that are asked for");
  command.add_flag("--json", options->json, "JSON lines instead of a table");
  choose(command, options, output, chosen, run_switch);
}

void add_place(CLI::App& app, const Output& output, cmdline::Action& chosen) {
  CLI::App& command =
      *app.add_subcommand("place", "a map over two nodes, by the share of keys of the second");
  const auto options = std::make_shared<PlaceOptions>();
  add_numbers(command, "--shares", options->shares,
              "percent of the keys on the second node; 0,25,50,75,100 by default");
  add_numbers(command, "--reads", options->reads,
              "percent of the requests that read; 100,50 by default");
  add_number(command, "--keys", options->keys, "of the map");
  add_number(command, "--value-bytes", options->value_bytes, "of each value");
  add_number(command, "--ops", options->ops, "requests of each thread");
  add_number(command, "--threads", options->threads, "that ask");
  add_number(command, "--in-flight", options->in_flight, "requests of a thread on each node");
  add_number(command, "--node-cores", options->node_cores, "of each node");
  add_number(
      command, "--slow", options->slowness,
      "how many times as slow the second node's workers are as this machine: they spin after "
      "each turn");
  add_number(command, "--repeats", options->repeats, "rounds");
  command.add_flag("--one-sided", options->one_sided,
                   "read by READs of either node's memory, over shm");
  add_number(command, "--node-bytes", options->node_bytes, "size of nodes");
  add_number(command, "--cache", options->cache_bytes,
             "bytes that a client remembers that reads by READs; it is filled before");
  add_number(command, "--seed", options->seed, "of the keys that are asked for");
  command.add_flag("--json", options->json, "JSON lines instead of a table");
  choose(command, options, output, chosen, run_place);
}

// What benchmarks of reads share (bench/read_load.hpp).
void add_read_options(CLI::App& command, ReadLoad& load) {
  add_number(command, "--keys", load.keys, "of the map");
  add_number(command, "--value-bytes", load.value_bytes, "of each value");
  add_number(command, "--ops", load.ops, "requests of each thread");
  add_number(command, "--scans", load.scan_percent, "percent of them that scan");
  add_number(command, "--scan-items", load.scan_items, "of each scan");
  add_number(command, "--threads", load.threads, "that ask");
  add_number(command, "--in-flight", load.in_flight, "requests of each thread");
  add_number(command, "--seed", load.seed, "of the keys that are asked for");
}

void add_one_sided(CLI::App& app, const Output& output, cmdline::Action& chosen) {
  CLI::App& command =
      *app.add_subcommand("one-sided", "reads by a client alone, by node size and memory");
  const auto options = std::make_shared<OneSidedBenchOptions>();
  add_choices(command, "--transports", options->transports, parse_node_transport,
              "shm, roce-udp, roce-udp6, roce-memif; shm,roce-udp by default");
  add_numbers(command, "--node-bytes", options->node_bytes,
              "sizes of nodes; 512,1024,2048,4096,8192 by default");
  add_numbers(command, "--cache", options->cache_bytes,
              "bytes that the client remembers; 0,33554432 by default");
  add_read_options(command, options->load);
  command.add_flag("--json", options->json, "JSON lines instead of a table");
  choose(command, options, output, chosen, run_one_sided);
}

void add_device(CLI::App& app, const Output& output, cmdline::Action& chosen) {
  CLI::App& command =
      *app.add_subcommand("device", "requests through a device, beside its host alone");
  const auto options = std::make_shared<DeviceBenchOptions>();
  add_list(command, "--experiment", options->experiments,
           device_experiment_names() + "; cache by default");
  add_numbers(command, "--cache", options->cache_bytes,
              "bytes that the device remembers besides the root; 0,1048576,67108864 by default "
              "(cache), 67108864 (ycsb), from 0 to what knows each leaf (miss)");
  add_numbers(command, "--balance", options->balances,
              "weights of its balancer, 0 being none; 0,1 by default (cache), 0 (ycsb, miss)");
  command.add_flag("--bare", options->bare,
                   "first a device that remembers nothing, the root included (cache)");
  add_number(command, "--own-gbps", options->own_gbps,
             "what the device's own memory gives, for the model of both ways (cache)");
  add_number(command, "--host-gbps", options->host_gbps,
             "what the way to its host's memory gives, likewise");
  add_number(command, "--slow", options->slowness,
             "how many times as slow the device's worker is as this machine: it spins after each "
             "turn");
  add_choices(command, "--places", options->places, parse_device_place,
              "host, one-sided, device (ycsb); all by default");
  add_choices(command, "--workload", options->workloads, parse_workload,
              "a b c d e f, cloud, get, scan, mixed (ycsb); a,b,c,d,e,f,cloud by default");
  add_choices(command, "--distribution", options->distributions, parse_distribution,
              "zipfian, uniform, latest (ycsb); zipfian,uniform by default, of d latest,uniform");
  add_numbers(command, "--scan-share", options->scan_shares,
              "shares of scans (ycsb, workload cloud); 0.5,0.8,1 by default");
  add_number(command, "--repeats", options->repeats, "rounds, in which all ways take turns");
  add_number(command, "--node-bytes", options->node_bytes, "size of nodes");
  add_read_options(command, options->load);
  command.add_flag("--json", options->json, "JSON lines instead of a table");
  choose(command, options, output, chosen, run_device);
}

void add_rings(CLI::App& app, const Output& output, cmdline::Action& chosen) {
  CLI::App& command = *app.add_subcommand("rings", "how requests could travel in shared memory");
  const auto options = std::make_shared<RingsOptions>();
  add_list(command, "--experiment", options->experiments,
           rings_experiment_names() + "; by default all");
  add_numbers(command, "--in-flight", options->in_flight,
              "no-ops, or chases; 1,8,16,32,64,128,256 by default");
  add_numbers(command, "--payload-bytes", options->payload_bytes,
              "of no-ops; 32,88,256,1024,4096 by default");
  add_numbers(command, "--rings", options->rings,
              "how many (doorbell, connections); 16,1024 by default");
  add_number(command, "--opened", options->opened, "connections opened and closed (connections)");
  add_numbers(command, "--idle", options->idle,
              "connections that ask nothing (sleep); 0,16,1000 by default");
  add_number(command, "--seconds", options->seconds, "how long an idle node is watched (sleep)");
  add_number(command, "--list-nodes", options->list_nodes,
             "length of the list, 64 bytes each (chase)");
  add_number(command, "--ops", options->ops,
             "round trips of a measurement; what is cheaper, more often");
  add_point_options(command, *options);
  choose(command, options, output, chosen, run_rings);
}

void add_rpc(CLI::App& app, const Output& output, cmdline::Action& chosen) {
  CLI::App& command = *app.add_subcommand("rpc", "asking a node, or one's own memory");
  const auto options = std::make_shared<RpcOptions>();
  add_list(command, "--experiment", options->experiments,
           rpc_experiment_names() + "; by default all but flood and peer");
  add_choices(command, "--target", options->targets, parse_target,
              "node, embedded; both by default (map)");
  add_choices(command, "--transport", options->transports, parse_node_transport,
              node_transport_names() + "; to the node; unix by default");
  add_numbers(command, "--threads", options->threads, "that ask; 1,2 by default");
  add_numbers(command, "--node-cores", options->node_cores, "workers of the node; 1 by default");
  add_number(command, "--in-flight", options->in_flight, "requests in flight on each thread");
  add_choices(command, "--keys", options->keys, parse_keys,
              "numbers, or fit: as many as --fit-bytes hold; 1000000,16000000,fit by default");
  cmdline::add_number_function<std::uint64_t>(
      command, "--fit-bytes", [options](std::uint64_t bytes) { options->fit_bytes = bytes; },
      "memory for --keys fit; by default half of what is available");
  add_numbers(command, "--write-share", options->write_shares,
              "of the requests (map); 0,0.5 by default");
  add_number(command, "--key-bytes", options->key_bytes, "length of keys (map)");
  add_number(command, "--value-bytes", options->value_bytes, "length of values (map)");
  add_numbers(command, "--batch", options->batches,
              "requests of a batch (batch); 1,2,4,8,16,32,64 by default");
  add_number(command, "--batch-keys", options->batch_keys, "keys of the map (batch)");
  add_numbers(command, "--flood", options->floods,
              "requests for connections in a second (flood); 0,5000,40000 by default");
  add_number(command, "--ops", options->ops,
             "operations of all threads; of no-ops five times as many; of batches what the "
             "largest do");
  add_number(command, "--seconds", options->seconds,
             "stop measuring after so long (map); 0: never");
  add_point_options(command, *options);
  choose(command, options, output, chosen, run_rpc);
}

void add_latency(CLI::App& app, const Output& output, cmdline::Action& chosen) {
  CLI::App& command = *app.add_subcommand("latency", "latency against throughput, as load rises");
  const auto options = std::make_shared<LatencyOptions>();
  add_list(command, "--experiment", options->experiments,
           latency_experiment_names() + "; by default all");
  add_choices(command, "--workload", options->workloads, parse_workload,
              "c, get, scan: what only reads; c,scan by default");
  add_number(command, "--scan-items", options->base.scan_items, "items of each scan");
  add_numbers(command, "--depths", options->depths,
              "requests in flight on each thread (closed); 1,2,4 to 256 by default");
  add_numbers(command, "--loads", options->loads,
              "shares of the most that the target does (open); 0.1,0.2 to 1.1 by default");
  add_numbers(command, "--rates", options->rates,
              "requests per second, in place of --loads (open)");
  add_common_options(command, options->base);
  choose(command, options, output, chosen, run_latency);
}

void add_table(CLI::App& app, const Output& output, cmdline::Action& chosen) {
  CLI::App& command = *app.add_subcommand("table", "queries beside the memory, and elsewhere");
  const auto options = std::make_shared<TableOptions>();
  add_list(command, "--experiment", options->experiments,
           table_experiment_names() + "; by default all");
  add_list(command, "--target", options->targets, table_target_names() + "; by default all");
  add_choices(command, "--transport", options->transports, parse_node_transport,
              "unix, shm; to the node; both by default");
  add_number(command, "--table-bytes", options->table_bytes, "of rows, about");
  add_numbers(command, "--groups", options->groups,
              "16,1024,65536,1048576: those to measure (group, distinct, clients)");
  add_numbers(command, "--clients", options->clients, "at a time (clients); 1,6 by default");
  add_point_options(command, *options);
  choose(command, options, output, chosen, run_table);
}

void add_sequencer(CLI::App& app, const Output& output, cmdline::Action& chosen) {
  CLI::App& command =
      *app.add_subcommand("sequencer", "numbers that clients take of one sequencer");
  const auto options = std::make_shared<SequencerOptions>();
  add_choices(command, "--form", options->forms, parse_sequencer_form,
              "rpc, one-sided; both by default");
  add_choices(command, "--transport", options->transports, parse_node_transport,
              node_transport_names() + "; to the node; shm,roce-udp by default");
  add_numbers(command, "--clients", options->clients, "at a time, each a thread; 1,2 by default");
  add_numbers(command, "--range", options->ranges, "numbers of one request; 1,16 by default");
  add_number(command, "--node-cores", options->node_cores, "workers of the node");
  add_number(command, "--slow", options->slowness,
             "how many times as slow the node's workers are as this machine: they spin after each "
             "turn");
  add_number(command, "--ops", options->ops, "requests of all clients");
  add_point_options(command, *options);
  choose(command, options, output, chosen, run_sequencer);
}

void add_hash(CLI::App& app, const Output& output, cmdline::Action& chosen) {
  CLI::App& command = *app.add_subcommand("hash", "hash maps, beside peers");
  const auto options = std::make_shared<HashBenchOptions>();
  add_list(command, "--experiment", options->experiments,
           hash_experiment_names() + "; by default all");
  add_choices(command, "--target", options->targets, parse_hash_target,
              "embedded, unix, rings-write, rings-send, device, absl, boost, memcached; by default "
              "those that are there");
  add_numbers(command, "--batches", options->batches,
              "requests in flight (batches); 1,2,4,8,16,32,64 by default");
  add_number(command, "--keys", options->pairs, "pairs of 16 and 48 bytes");
  add_number(command, "--ops", options->ops, "requests of a measurement");
  add_choice(command, "--versions", options->versions, parse_switch, "on, off (ours only)");
  add_number(command, "--cache", options->cache_percent, "percent of the pairs (device only)");
  add_number(command, "--probe-seconds", options->probe_seconds,
             "for each try at the rate of random lines");
  add_point_options(command, *options);
  choose(command, options, output, chosen, run_hash);
}

void add_inference(CLI::App& app, const Output& output, cmdline::Action& chosen) {
  CLI::App& command =
      *app.add_subcommand("inference", "bags of rows of an embedding table, reduced to sums");
  const auto options = std::make_shared<InferenceOptions>();
  add_choices(
      command, "--target", options->targets, parse_inference_target,
      "lines, merci, embedded, node, reads, parse, model, model-node, merci-grouped, grouped, "
      "grouped-node; all but reads, parse and models by default");
  command.add_option("--category", options->category, "of reviews: sports, office, books ...")
      ->option_text("TEXT");
  add_number(command, "--scale", options->scale, "part of the category's items, up to 1");
  add_numbers(command, "--ratio", options->ratios, "memory of groups, of rows; 0.25 by default");
  add_choices(command, "--type", options->types, parse_embedding_type,
              "fp32, fp16, bf16, int8; fp32 by default");
  add_numbers(command, "--length", options->lengths, "rows of a bag; 50 by default");
  add_number(command, "--rows", options->rows, "of the table");
  add_number(command, "--dimension", options->dimension, "values of a row");
  add_number(command, "--bags", options->bags, "of one request; of a model queries");
  add_numbers(command, "--threads", options->threads, "that reduce bags; 1 by default");
  add_number(command, "--ops", options->ops, "bags of a measurement; of a model queries");
  add_point_options(command, *options);
  choose(command, options, output, chosen, run_inference);
}

void add_fabric(CLI::App& app, const Output& output, cmdline::Action& chosen) {
  CLI::App& command = *app.add_subcommand("fabric", "the verbs, transport by transport");
  const auto options = std::make_shared<FabricOptions>();
  add_list(command, "--experiment", options->experiments,
           fabric_experiment_names() + "; by default all");
  add_choices(command, "--transport", options->transports, parse_fabric_kind,
              fabric_kind_names() + "; shm,roce-udp by default");
  add_numbers(command, "--bytes", options->bytes, "sizes (verbs); 8,64,1024,4096,65536 by default");
  add_numbers(command, "--in-flight", options->in_flight,
              "requests in flight (verbs); 1,32 by default");
  add_numbers(command, "--batches", options->batches,
              "READs posted with one doorbell (batch); 1,4,16,64 by default");
  add_numbers(command, "--loss", options->losses,
              "share of packets that get lost (loss); 0,0.01,0.2 by default");
  add_number(command, "--region-bytes", options->region_bytes,
             "memory that is offered; READs go to random places of its first half");
  add_number(command, "--ops", options->ops, "requests of a measurement; of long ones fewer");
  add_point_options(command, *options);
  choose(command, options, output, chosen, run_fabric);
}

}  // namespace

void add_bench_commands(CLI::App& app, const Output& output, cmdline::Action& chosen) {
  app.require_subcommand(1);
  add_ycsb(app, output, chosen);
  add_tree(app, output, chosen);
  add_memory(app, output, chosen);
  add_in_network(app, output, chosen);
  add_switch(app, output, chosen);
  add_place(app, output, chosen);
  add_one_sided(app, output, chosen);
  add_device(app, output, chosen);
  add_rings(app, output, chosen);
  add_rpc(app, output, chosen);
  add_table(app, output, chosen);
  add_latency(app, output, chosen);
  add_sequencer(app, output, chosen);
  add_inference(app, output, chosen);
  add_fabric(app, output, chosen);
  add_hash(app, output, chosen);
  add_log_commands(app, output, chosen);
}

int run(std::span<const std::string> arguments, const Output& output) {
  CLI::App app("Measures Espalier's map, its peers and the machine", "espalier-bench");
  cmdline::Action chosen;
  app.set_version_flag("--version", "espalier-bench " ESPALIER_VERSION,
                       "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  add_bench_commands(app, output, chosen);
  cmdline::add_completion_command(app, output.out, chosen);
  app.footer(std::string(kFooter));  // last, for commands inherit what stands here before
  if (const auto ended = cmdline::parse(app, arguments, output.out, messages(output)))
    return *ended;
  return chosen ? chosen() : cmdline::kUsage;
}

}  // namespace espalier::bench
