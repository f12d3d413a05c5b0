// SPDX-License-Identifier: Apache-2.0
#include "dataplane/process_switch.hpp"

#include <algorithm>

#include "fabric/roce/frame.hpp"
#include "fabric/roce/icrc.hpp"

namespace espalier::dataplane {

ProcessSwitch::ProcessSwitch(std::initializer_list<InstalledFunction*> functions) {
  readers_.reserve(functions.size());
  for (InstalledFunction* const function : functions) readers_.push_back(function->make_reader());
}

ProcessSwitch::ProcessSwitch(std::span<InstalledFunction> functions) {
  readers_.reserve(functions.size());
  for (InstalledFunction& function : functions) readers_.push_back(function.make_reader());
}

void ProcessSwitch::take_all() {
  way_.clear();
  for (std::size_t i = 0; i < readers_.size(); ++i) {
    way_.push_back({i, {i == 0, i + 1 == readers_.size(), kShimBytes}});
  }
}

bool ProcessSwitch::find_way(const fabric::roce::PortAddress& from,
                             const fabric::roce::PortAddress& to) {
  if (!route) {
    take_all();
    return true;
  }
  way_.clear();
  return route(from, to, way_);
}

// The frame goes from switch to switch.
ProcessSwitch::Came ProcessSwitch::pass_through() {
  Came came = between ? Came::changed : Came::as_it_was;
  for (std::size_t i = 0; i < way_.size(); ++i) {
    const std::size_t bytes = frame_.size();
    frame_.resize(bytes + kShimBytes);
    Processed done;
    readers_[way_[i].number].with([&](const PacketFunction& function) {
      done = function.process(std::span(frame_).first(bytes), way_[i].hop);
    });
    count(done);
    if (done.outcome == Outcome::shim_dropped) return Came::lost;
    if (done.outcome > Outcome::read_passed) came = Came::changed;
    frame_.resize(bytes + static_cast<std::size_t>(std::ptrdiff_t{done.grown}));
    if (i + 1 != way_.size() && between) between(frame_);
    if (frame_.empty()) {
      ++counters_.lost;
      return Came::lost;
    }
  }
  return came;
}

fabric::roce::FrameHeader ProcessSwitch::put_into_frame(const fabric::roce::PortAddress& from,
                                                        const fabric::roce::PortAddress& to,
                                                        std::span<const std::byte> content) {
  fabric::roce::FrameHeader header;
  header.flow = {from.ip, to.ip, from.udp_port, to.udp_port, true};
  const std::size_t before = fabric::roce::frame_header_bytes(header);
  frame_.resize(before + content.size());
  fabric::roce::write_frame_header(frame_.data(), header, content.size());
  std::ranges::copy(content, frame_.begin() + static_cast<std::ptrdiff_t>(before));
  return header;
}

std::vector<std::byte> ProcessSwitch::process_datagram(const fabric::roce::PortAddress& from,
                                                       const fabric::roce::PortAddress& to,
                                                       std::span<const std::byte> datagram) {
  ++counters_.packets;
  if (!find_way(from, to)) {
    ++counters_.lost;
    return {};
  }
  const fabric::roce::FrameHeader header = put_into_frame(from, to, datagram);
  fabric::roce::set_udp_checksum(frame_);  // as systems do
  if (pass_through() == Came::lost) return {};
  const auto whole = fabric::roce::parse_frame(frame_);
  if (!whole || whole->flow != header.flow) return {};
  return {whole->ib.begin(), whole->ib.end()};
}

void ProcessSwitch::process(const fabric::roce::PortAddress& from,
                            const fabric::roce::PortAddress& to, std::span<std::byte> ib) {
  ++counters_.packets;
  if (ib.empty() || ib.size() > fabric::roce::kIbBytesMax) return;
  if (!find_way(from, to)) {
    ++counters_.lost;
    ib.back() ^= std::byte{1};
    return;
  }
  const fabric::roce::FrameHeader header = put_into_frame(from, to, ib);
  const std::size_t before = frame_.size() - ib.size();
  // What comes out must be as the port would have it from a network, headers with it.
  const Came came = pass_through();
  if (came == Came::as_it_was) return;
  if (came == Came::changed && frame_.size() == before + ib.size()) {
    const auto whole = fabric::roce::parse_frame(frame_);
    if (whole && whole->flow == header.flow) {
      std::ranges::copy(whole->ib, ib.begin());
      return;
    }
  }
  ib.back() ^= std::byte{1};
}

void ProcessSwitch::process(std::uint32_t& key, std::uint64_t& address) {
  take_all();
  redirect(key, address);
}

void ProcessSwitch::process(const fabric::roce::PortAddress& from,
                            const fabric::roce::PortAddress& to, std::uint32_t& key,
                            std::uint64_t& address) {
  if (find_way(from, to)) redirect(key, address);
}

void ProcessSwitch::redirect(std::uint32_t& key, std::uint64_t& address) {
  ++counters_.packets;
  std::optional<Shim> shim;
  for (std::size_t i = 0; i < way_.size(); ++i) {
    readers_[way_[i].number].with([&](const PacketFunction& function) {
      count(function.redirect(key, address, shim, way_[i].hop));
    });
    if (i + 1 != way_.size() && between_reads) between_reads(shim);
  }
}

void ProcessSwitch::count(const Processed& done) {
  const auto add = [&](Outcome outcome, std::uint64_t& to) {
    to += done.outcome == outcome ? 1 : 0;
  };
  add(Outcome::redirected, counters_.redirected);
  add(Outcome::read_passed, counters_.reads_passed);
  add(Outcome::key_unknown, counters_.keys_unknown);
  add(Outcome::carried, counters_.carried);
  add(Outcome::shim_passed, counters_.shims_passed);
  add(Outcome::shim_removed, counters_.shims_removed);
  add(Outcome::shim_dropped, counters_.lost);
  add(Outcome::hinted, counters_.gets_hinted);
}

}  // namespace espalier::dataplane
