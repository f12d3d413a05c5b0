// SPDX-License-Identifier: Apache-2.0
// The rows of the table of numbers of which there is a line for each object or peer. Kinds that
// have come since are told by their own samples (sample_metrics.hpp).
#include "node/metric_lists.hpp"
#include "node/number_table.hpp"

namespace espalier::node {
namespace {

void rows_of_maps(NumberTable& table) {
  table.list("map_items", "gauge", "map", "Items.", of_maps<&MapStats::items>);
  table.list("map_leaves", "gauge", "map", "Leaf nodes.", of_maps<&MapStats::leaves>);
  table.list("map_interior_nodes", "gauge", "map", "Nodes above the leaves.",
             of_maps<&MapStats::interior_nodes>);
  table.list("map_height", "gauge", "map", "Levels of nodes; a lone leaf is 1.",
             of_maps<&MapStats::height>);
  table.list("map_node_bytes", "gauge", "map", "Memory of nodes in the tree.",
             of_maps<&MapStats::node_bytes>);
  table.list("map_value_bytes", "gauge", "map", "Memory of values that lie beside the nodes.",
             of_maps<&MapStats::value_bytes>);
  table.list("map_retired_bytes", "gauge", "map",
             "Memory that is unlinked and waits for readers or snapshots before it is free.",
             of_maps<&MapStats::retired_bytes>);
  table.list("map_snapshots", "gauge", "map", "Snapshots held; they keep old versions.",
             of_maps<&MapStats::snapshots>);
  table.list("map_read_version", "gauge", "map", "The version at which reads begin.",
             of_maps<&MapStats::read_version>);
  table.list("map_write_version", "gauge", "map",
             "The last version that a write has taken; what lies between is on its way.",
             of_maps<&MapStats::write_version>);
  table.list("map_log_merges", "counter", "map", "Leaves rebuilt because their logs were full.",
             of_maps<&MapStats::log_merges>);
  table.list("map_splits", "counter", "map", "Leaves split.", of_maps<&MapStats::splits>);
  table.list("map_redistributions", "counter", "map",
             "Splits avoided by giving items to a neighbour.", of_maps<&MapStats::redistributions>);
  table.list("map_merges", "counter", "map", "Nodes merged.", of_maps<&MapStats::merges>);
}

void rows_of_feeds(NumberTable& table) {
  table.list("feed_followers", "gauge", "map", "Readers from elsewhere that follow its feed.",
             of_feeds<&wire::FeedNumbers::followers>);
  table.list("feed_entries", "counter", "map", "Moves of nodes that its mapping feed has told.",
             of_feeds<&wire::FeedNumbers::entries>);
  table.list(
      "feed_gaps", "counter", "map",
      "Times that entries of its feed may be missing: one was left out, or the feed was off.",
      of_feeds<&wire::FeedNumbers::gaps>);
}

void rows_of_sequencers(NumberTable& table) {
  table.list("sequencer_next", "gauge", "sequencer", "All numbers that it gave are below.",
             of_sequencers<&wire::SequencerFacts::next>);
  table.list("sequencer_epoch", "gauge", "sequencer", "Its epoch.",
             of_sequencers<&wire::SequencerFacts::epoch>);
  table.list("sequencer_sealed", "gauge", "sequencer", "1: its epoch has ended.", sealed);
  table.list("sequencer_requests", "counter", "sequencer",
             "Requests for its numbers that the node answered.",
             of_sequencers<&wire::SequencerFacts::requests>);
  table.list("sequencer_adds", "counter", "sequencer",
             "Adds to its word that the node made for them.",
             of_sequencers<&wire::SequencerFacts::adds>);
}

void rows_of_peers(NumberTable& table) {
  table.list("peer_links_up", "gauge", "peer", "Links of workers to a peer that are there.",
             of_peers<&offload::PeerTotals::links_up>);
  table.list("peer_links_opened", "counter", "peer", "Times that one was made.",
             of_peers<&offload::PeerTotals::opened>);
  table.list("peer_posts", "counter", "peer", "READs, WRITEs and atomics that left.",
             of_peers<&offload::PeerTotals::posts>);
  table.list("peer_doorbells", "counter", "peer", "Doorbells by which they left.",
             of_peers<&offload::PeerTotals::doorbells>);
  table.list("peer_completions", "counter", "peer", "Completions that told of their ends.",
             of_peers<&offload::PeerTotals::completions>);
  table.list("peer_failures", "counter", "peer", "Posts and calls that did not end as done.",
             of_peers<&offload::PeerTotals::failures>);
}

void rows_of_tables(NumberTable& table) {
  table.list("table_rows", "gauge", "table", "Rows.", of_tables<&wire::TableNumbers::rows>);
  table.list("table_row_bytes", "gauge", "table", "Bytes of one row.",
             of_tables<&wire::TableNumbers::row_bytes>);
  table.list("table_pages", "gauge", "table", "Pages of rows.",
             of_tables<&wire::TableNumbers::pages>);
  table.list("table_memory_bytes", "gauge", "table", "Memory of pages, page list and header.",
             of_tables<&wire::TableNumbers::memory_bytes>);
}

void rows_of_queries_of_tables(NumberTable& table) {
  table.list("table_queries_running", "gauge", "table", "Queries of it that run.",
             of_table_queries<&wire::QueryTotals::running>);
  table.list("table_queries_waiting", "gauge", "table",
             "Queries of it that wait for a place to run.",
             of_table_queries<&wire::QueryTotals::waiting>);
  table.list("table_queries_ended", "counter", "table",
             "Queries of it that ended with all rows, or early, as the client wanted.",
             of_table_queries<&wire::QueryTotals::ended>);
  table.list("table_queries_failed", "counter", "table", "Queries of it that ended with an error.",
             of_table_queries<&wire::QueryTotals::failed>);
  table.list("table_queries_refused", "counter", "table",
             "Queries of it for which there was no place to run or wait.",
             of_table_queries<&wire::QueryTotals::refused>);
  table.list("table_read_rows", "counter", "table",
             "Rows that queries have read beside the memory.",
             of_tables<&wire::TableNumbers::rows_read>);
  table.list("table_read_bytes", "counter", "table",
             "Bytes that queries have read beside the memory.",
             of_tables<&wire::TableNumbers::bytes_read>);
  table.list("table_sent_rows", "counter", "table", "Rows of results that were sent to clients.",
             of_tables<&wire::TableNumbers::rows_sent>);
  table.list("table_sent_bytes", "counter", "table", "Bytes of results that were sent to clients.",
             of_tables<&wire::TableNumbers::bytes_sent>);
}

}  // namespace

void add_object_numbers(NumberTable& table) {
  rows_of_maps(table);
  rows_of_feeds(table);
  rows_of_sequencers(table);
  rows_of_peers(table);
  rows_of_tables(table);
  rows_of_queries_of_tables(table);
}

}  // namespace espalier::node
