// SPDX-License-Identifier: Apache-2.0
// A node with a map, a switch before it, and its controller, all in this process.
#pragma once

#include <memory>
#include <string>

#include "base/temporary_folder.hpp"
#include "bench/own_node.hpp"
#include "bench/run_switch.hpp"
#include "dataplane/running_switch.hpp"
#include "espalier/map.hpp"
#include "index/controller/controller_thread.hpp"
#include "kinds/map/offload/index_reads.hpp"

namespace espalier::bench {

class OwnLine {
 public:
  /// The map has keys `user000000000000` and so on; the tables are in the switch when it is made.
  /// Errors: throws std::runtime_error.
  explicit OwnLine(const SwitchRunOptions& options);
  [[nodiscard]] const offload::IndexReadCounts& met() const;
  [[nodiscard]] std::string address() const { return "roce+memif:" + path("clients"); }

 private:
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }
  std::unique_ptr<node::Node> start();

  base::TemporaryFolder folder_;
  std::unique_ptr<node::Node> node_;
  std::unique_ptr<dataplane::RunningSwitch> switch_;
  Store store_;
  std::unique_ptr<client::ControllerThread> controller_;
};

}  // namespace espalier::bench
