// SPDX-License-Identifier: Apache-2.0
#include "fabric/xdp/filter.hpp"

#include <arpa/inet.h>
#include <linux/if_link.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/system_error.hpp"
#include "fabric/ethernet.hpp"

namespace espalier::fabric::xdp {
namespace {

// Where things lie in a frame.
constexpr std::int16_t kTypeAt = 12;
constexpr std::int16_t kIpAt = 14;
constexpr std::int16_t kV4Bytes = 20;
constexpr std::int16_t kV6Bytes = 40;
constexpr std::int16_t kUdpBytes = 8;

constexpr std::uint8_t kResult = BPF_REG_0;
constexpr std::uint8_t kContext = BPF_REG_6;
constexpr std::uint8_t kFrame = BPF_REG_2;
constexpr std::uint8_t kEnd = BPF_REG_3;
constexpr std::uint8_t kAny = BPF_REG_4;

/// Instructions, and jumps to one place that comes last. Numbers are compared as they lie in
/// memory, so callers pass them in network byte order.
class Program {
 public:
  void add(int code, std::uint8_t to, std::uint8_t from, int offset, std::int32_t number) {
    bpf_insn made{};
    made.code = static_cast<std::uint8_t>(code);
    made.dst_reg = to & 0xF;
    made.src_reg = from & 0xF;
    made.off = static_cast<std::int16_t>(offset);
    made.imm = number;
    made_.push_back(made);
  }
  void copy(std::uint8_t to, std::uint8_t from) {
    add(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0);
  }
  void set(std::uint8_t to, std::int32_t number) {
    add(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, number);
  }
  void load(int size, std::uint8_t to, std::uint8_t from, std::size_t offset) {
    add(BPF_LDX | BPF_MEM | size, to, from, static_cast<int>(offset), 0);
  }
  /// Unless these bytes of the frame, of which only some count, are so.
  void pass_unless(int size, int at, std::uint32_t number, std::uint32_t of = 0xFFFF'FFFF) {
    load(size, kAny, kFrame, static_cast<std::size_t>(at));
    if (of != 0xFFFF'FFFF) {
      add(BPF_ALU | BPF_AND | BPF_K, kAny, 0, 0, static_cast<std::int32_t>(of));
    }
    pass_if(BPF_JMP32 | BPF_JNE | BPF_K, kAny, 0, static_cast<std::int32_t>(number));
  }
  void pass_if(int jump, std::uint8_t left, std::uint8_t right, std::int32_t number = 0) {
    jumps_.push_back(made_.size());
    add(jump, left, right, 0, number);
  }
  std::vector<bpf_insn> end() && {
    for (const std::size_t jump : jumps_) {
      made_[jump].off = static_cast<std::int16_t>(made_.size() - jump - 1);
    }
    set(kResult, XDP_PASS);
    add(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
    return std::move(made_);
  }

 private:
  std::vector<bpf_insn> made_;
  std::vector<std::size_t> jumps_;
};

std::uint32_t word(const roce::IpAddress& ip, std::size_t at) {
  std::uint32_t bytes = 0;
  std::memcpy(&bytes, ip.bytes.data() + at, sizeof bytes);
  return bytes;
}

void check_v4(Program& program, const roce::IpAddress& ip) {
  program.pass_unless(BPF_B, kIpAt, 0x45);
  // No fragment: of flags and place only "do not fragment" may be set.
  program.pass_unless(BPF_H, kIpAt + 6, 0, htons(0xBFFF));
  program.pass_unless(BPF_B, kIpAt + 9, IPPROTO_UDP);
  program.pass_unless(BPF_W, kIpAt + 16, word(ip, 0));
}

void check_v6(Program& program, const roce::IpAddress& ip) {
  program.pass_unless(BPF_B, kIpAt, 0x60, 0xF0);
  program.pass_unless(BPF_B, kIpAt + 6, IPPROTO_UDP);
  for (std::size_t at = 0; at < 16; at += 4) {
    program.pass_unless(BPF_W, kIpAt + 24 + static_cast<int>(at), word(ip, at));
  }
}

}  // namespace

std::vector<bpf_insn> filter_program(const roce::PortAddress& address, int sockets) {
  const bool six = address.ip.is_v6;
  const int udp_at = kIpAt + (six ? kV6Bytes : kV4Bytes);
  Program program;
  program.copy(kContext, BPF_REG_1);
  program.load(BPF_W, kFrame, kContext, offsetof(xdp_md, data));
  program.load(BPF_W, kEnd, kContext, offsetof(xdp_md, data_end));
  program.copy(kAny, kFrame);
  program.add(BPF_ALU64 | BPF_ADD | BPF_K, kAny, 0, 0, udp_at + kUdpBytes);
  program.pass_if(BPF_JMP | BPF_JGT | BPF_X, kAny, kEnd);
  program.pass_unless(BPF_H, kTypeAt, htons(six ? wire::kEtherTypeIpv6 : wire::kEtherTypeIpv4));
  if (six) {
    check_v6(program, address.ip);
  } else {
    check_v4(program, address.ip);
  }
  program.pass_unless(BPF_H, udp_at + 2, htons(address.udp_port));
  program.load(BPF_W, BPF_REG_2, kContext, offsetof(xdp_md, rx_queue_index));
  program.add(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, sockets);
  program.add(0, 0, 0, 0, 0);        // the upper half of the number
  program.set(BPF_REG_3, XDP_PASS);  // where there is no socket
  program.add(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_map);
  program.add(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
  return std::move(program).end();
}

std::unexpected<Error> refused_by_kernel(int number) {
  // ENOBUFS: more memory is locked than the process may lock.
  if (number == EPERM || number == EACCES || number == ENOBUFS)
    return is_unsupported(Unsupported::rights);
  if (number == EAFNOSUPPORT || number == ENOSYS) return is_unsupported(Unsupported::kernel);
  return base::refused_by_system(number);
}

Result<std::unique_ptr<Filter>> Filter::attach(std::shared_ptr<const Library> library,
                                               std::uint32_t interface, std::uint32_t queues,
                                               const roce::PortAddress& address, bool native) {
  std::unique_ptr<Filter> made(new Filter(std::move(library)));
  if (const auto loaded = made->load(queues, address); !loaded) {
    return std::unexpected(loaded.error());
  }
  if (const auto attached = made->attach_to(interface, native); !attached) {
    return std::unexpected(attached.error());
  }
  return made;
}

// To close the link would do too, but some time later in older kernels.
Filter::~Filter() {
  if (link_) static_cast<void>(library_->detach(link_.number()));
}

Result<void> Filter::load(std::uint32_t queues, const roce::PortAddress& address) {
  sockets_ = memory::Descriptor(library_->create_map(BPF_MAP_TYPE_XSKMAP, "espalier_xsks",
                                                     sizeof(std::uint32_t), sizeof(std::uint32_t),
                                                     queues, nullptr));
  if (!sockets_) return refused_by_kernel(errno);
  const std::vector<bpf_insn> program = filter_program(address, sockets_.number());
  program_ = memory::Descriptor(library_->load_program(
      BPF_PROG_TYPE_XDP, "espalier_roce", "Apache-2.0", program.data(), program.size(), nullptr));
  if (!program_) return refused_by_kernel(errno);
  return {};
}

Result<void> Filter::attach_to(std::uint32_t interface, bool native) {
  int why = EINVAL;
  for (const bool in_driver : {true, false}) {
    if (in_driver && !native) continue;
    bpf_link_create_opts options{};
    options.sz = sizeof options;
    options.flags = in_driver ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
    link_ = memory::Descriptor(
        library_->attach(program_.number(), static_cast<int>(interface), BPF_XDP, &options));
    is_native_ = in_driver;
    if (link_) return {};
    why = errno;
    if (why == EBUSY || why == EEXIST) return is_unsupported(Unsupported::program);
    if (why == EPERM) break;
    // A driver that cannot do it, or not with this MTU, says so in many ways.
  }
  return refused_by_kernel(why);
}

Result<void> Filter::set_socket(std::uint32_t queue, int socket) {
  if (library_->set_in_map(sockets_.number(), &queue, &socket, 0) != 0) {
    return refused_by_kernel(errno);
  }
  return {};
}

}  // namespace espalier::fabric::xdp
