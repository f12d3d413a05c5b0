// SPDX-License-Identifier: Apache-2.0
#include "bench/option_rows.hpp"

#include <cstdlib>

namespace espalier::bench {
namespace {

std::optional<bool> parse_on_or_off(std::string_view text) {
  if (text == "on") return true;
  if (text == "off") return false;
  return std::nullopt;
}

}  // namespace

void OptionRows::on_or_off(const std::string& flag, bool& to, const std::string& help) {
  choice(flag, to, parse_on_or_off, "on, off" + help);
}

void OptionRows::node_address(std::string& to, const std::string& help) {
  text("--node-address", to, help);
  if (command_ == nullptr) return;
  // All connections of the process use it; a path is no secret.
  command_->add_option_function<std::string>(
      "--secret-file",
      [](const std::string& path) { setenv("ESPALIER_SECRET_FILE", path.c_str(), 1); },
      "file with the name and secret by which to come to that node, if it is one of a network "
      "(default: ESPALIER_SECRET_FILE)");
}

void OptionRows::of_points(PointOptions& to) {
  number("--seed", to.seed, {}, "same seed, same work");
  number("--repeat,--repeats", to.repeats, {1, 1000}, "rounds; medians are printed last");
  of_output(to);
}

void OptionRows::of_output(PointOptions& to) {
  number("--probe-rounds", to.probe_rounds, {},
         "of the ping-pong between cores before and after; 0: none");
  json(to);
}

}  // namespace espalier::bench
