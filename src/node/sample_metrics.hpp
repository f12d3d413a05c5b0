// SPDX-License-Identifier: Apache-2.0
// Metrics of objects, made from their labelled samples (wire/samples.hpp).
//
// A sample "lookups" of the kind "hash" becomes the metric `espalier_hash_lookups`, for a counter
// `espalier_hash_lookups_total`, with the object's name as the label `hash`. Only those of a map's
// feed are `espalier_feed_`, without the kind.
//
// Thread: any.
#pragma once

#include <string>
#include <string_view>

#include "wire/samples.hpp"

namespace espalier::node {

/// The metric of a sample. `kind_word`: of its object (wire::kind_word).
[[nodiscard]] std::string metric_name(const wire::Sample& sample, std::string_view kind_word);

/// Appends the samples of these objects, each metric once with its lines adjacent. Skips what would
/// make the page invalid: a metric of the node's table, and a duplicate series. Requires: each is
/// wire::is_good(), so that no gauge has the name of a counter.
void append_sample_metrics(std::string& page, const wire::SampledObjects& sampled);

}  // namespace espalier::node
