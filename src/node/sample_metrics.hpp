// SPDX-License-Identifier: Apache-2.0
// Metrics of objects, made of their labelled samples (wire/samples.hpp).
//
// A sample "lookups" of the kind "hash" is the metric `espalier_hash_lookups`, of a counter
// `espalier_hash_lookups_total`, with the object's name under the label `hash`. Only
// those of a map's feed are `espalier_feed_`, without the kind.
//
// Thread: any.
#pragma once

#include <string>
#include <string_view>

#include "wire/samples.hpp"

namespace espalier::node {

/// The metric of a sample. `kind_word`: of its object (wire::kind_word).
[[nodiscard]] std::string metric_name(const wire::Sample& sample, std::string_view kind_word);

/// Appends the samples of these objects, each metric once and all its lines together. What would
/// make the page unreadable is left out: a metric of the node's table, and a series that is there
/// already. Requires: each is wire::is_good(), so that no gauge has the name of a counter.
void append_sample_metrics(std::string& page, const wire::SampledObjects& sampled);

}  // namespace espalier::node
