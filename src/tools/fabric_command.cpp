// SPDX-License-Identifier: Apache-2.0
// espalier fabric serve, ping, read, write: the verbs of the fabric, tried by hand.
#include <CLI/CLI.hpp>

#include "tools/commands.hpp"

namespace espalier::tools {

void add_fabric_command(CLI::App& app, Environment& environment, Action& chosen) {
  CLI::App& command = *app.add_subcommand("fabric", "Try a link between memories: serve, ping");
  command.require_subcommand(1);
  command.footer(
      "An ADDRESS is shm:PATH, for processes of one machine, roce://HOST[:PORT]/SERVICE, for "
      "RoCEv2\n"
      "over UDP, roce+memif:PATH[,link=LINK][,service=SERVICE], for the same over memif,\n"
      "roce+xdp://INTERFACE/HOST[:PORT]/SERVICE, for the same through a network interface by\n"
      "AF_XDP, or ofi://PROVIDER/HOST[:PORT], for libfabric: PROVIDER is tcp, or verbs for "
      "network\n"
      "cards. HOST is an address of IPv4 or IPv6, or a name; PORT is 4791, or of ofi 7471,\n"
      "SERVICE 1, and LINK one that is free, unless given.\n"
      "Examples:\n"
      "  espalier fabric serve roce://127.0.0.1/1 --bytes 64M\n"
      "  espalier fabric ping roce://127.0.0.1/1 --verb fetch-add\n");
  add_fabric_serve(command, environment, chosen);
  add_fabric_ping(command, environment, chosen);
}

}  // namespace espalier::tools
