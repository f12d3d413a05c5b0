// SPDX-License-Identifier: Apache-2.0
// What a core pays for packets: to make and seal them, to read and check them.
#include <benchmark/benchmark.h>

#include <vector>

#include "fabric/roce/icrc.hpp"
#include "fabric/roce/packet.hpp"

namespace espalier::fabric::roce {
namespace {

const IpFlow kFlow{IpAddress::v4(10, 0, 0, 1), IpAddress::v4(10, 0, 0, 2), 49152};

/// A READ request, or a response with a payload of so many bytes.
struct Example {
  explicit Example(std::size_t payload_bytes) : payload(payload_bytes, std::byte{0x5A}) {
    headers.bth.opcode =
        payload_bytes == 0 ? PacketOpcode::read_request : PacketOpcode::read_response_only;
    bytes.resize(packet_bytes(headers.bth.opcode, payload_bytes));
  }
  void make() {
    ++headers.bth.psn;
    write_packet(bytes.data(), headers, payload);
    icrc.seal(bytes);
  }
  Icrc icrc{kFlow};
  Headers headers;
  std::vector<std::byte> payload;
  std::vector<std::byte> bytes;
};

void make_packet(benchmark::State& state) {
  Example example(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    example.make();
    benchmark::DoNotOptimize(example.bytes.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(make_packet)->Arg(0)->Arg(64)->Arg(1024)->Arg(4096);

void read_packet(benchmark::State& state) {
  Example example(static_cast<std::size_t>(state.range(0)));
  example.make();
  for (auto _ : state) {
    benchmark::ClobberMemory();
    const auto packet = parse(example.bytes);
    if (!packet || !example.icrc.matches(example.bytes)) state.SkipWithError("refused");
    benchmark::DoNotOptimize(packet->reth.address);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(read_packet)->Arg(0)->Arg(64)->Arg(1024)->Arg(4096);

void redirect(benchmark::State& state) {
  Example example(0);
  example.make();
  std::uint64_t address = 0;
  for (auto _ : state) {
    redirect_read(example.bytes, ++address, 7);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(redirect);

}  // namespace
}  // namespace espalier::fabric::roce

BENCHMARK_MAIN();
