// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/control_packets.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "fabric/endpoint.hpp"
#include "fabric/shm/mapping_cache.hpp"
#include "memory/seqpacket.hpp"
#include "wire/fabric_shm.hpp"

namespace espalier::fabric::shm {
namespace {

using memory::Descriptor;
using memory::SharedMemory;
using wire::FabricPacket;

static_assert(sizeof(wire::FabricHello::data) == kConnectDataMax);
static_assert(sizeof(wire::FabricWelcome::data) == kAcceptDataMax);
static_assert(sizeof(wire::FabricWelcome) < kPacketBytesMax);

constexpr std::uint64_t kWordsBytes = RegionTable::kRegionsMax * sizeof(RegionKey);
constexpr auto kAllRights =
    static_cast<std::uint32_t>(RemoteRights::read | RemoteRights::write | RemoteRights::atomic);

template <class T>
T make(FabricPacket kind) {
  T packet{};
  packet.packet = static_cast<std::uint32_t>(kind);
  return packet;
}

template <class T>
Result<void> send(int socket, const T& packet, std::span<const int> descriptors = {}) {
  return memory::send_packet(socket, std::as_bytes(std::span(&packet, 1)), descriptors);
}

// How bytes are to be placed, beside the rights in an answer.
std::uint32_t flags_of(Placement placement) {
  return (placement.kind == MemoryKind::persistent ? wire::kFabricPersistent : 0) |
         (placement.past_cache ? wire::kFabricPastCache : 0);
}

Placement placement_in(std::uint32_t flags) {
  const bool persistent = (flags & wire::kFabricPersistent) != 0;
  return {persistent ? MemoryKind::persistent : MemoryKind::volatile_memory,
          (flags & wire::kFabricPastCache) != 0};
}

// A copy of a packet of this kind, or nothing: it is another, or of another length.
template <class T>
std::optional<T> read(std::span<const std::byte> packet, FabricPacket kind) {
  T copy;
  if (packet.size() != sizeof copy) return std::nullopt;
  std::memcpy(&copy, packet.data(), sizeof copy);
  if (copy.packet != static_cast<std::uint32_t>(kind)) return std::nullopt;
  return copy;
}

std::vector<std::byte> data_of(const std::uint8_t* data, std::uint32_t bytes) {
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  return {begin, begin + bytes};
}

Result<SharedMemory> attach_words(Descriptor descriptor) {
  auto words = SharedMemory::attach(std::move(descriptor), kWordsBytes, memory::Rights::read);
  if (words) words->close_descriptor();
  return words;
}

// Nothing is mapped, so its bounds may be any.
Result<Mapped> read_void_answer(const wire::FabricAnswer& answer, const Descriptor& descriptor,
                                RegionKey asked) {
  if (asked == 0 || answer.key != asked || answer.status != 0 || answer.rights == 0 ||
      answer.rights > kAllRights || answer.bytes == 0 || answer.descriptor_offset != 0 ||
      descriptor) {
    return fail(Code::corrupt);
  }
  Mapped mapped;
  mapped.is_void = true;
  mapped.window = {answer.base, answer.bytes, nullptr,
                   nullptr,     asked,        static_cast<RemoteRights>(answer.rights),
                   {}};
  return mapped;
}

}  // namespace

Result<void> send_hello(int socket, std::span<const std::byte> data, const RegionTable& regions) {
  const auto words = regions.words().read_only();
  if (!words) return std::unexpected(words.error());
  auto hello = make<wire::FabricHello>(FabricPacket::hello);
  hello.format = wire::kFabricFormat;
  hello.magic = wire::kFabricMagic;
  hello.data_bytes = static_cast<std::uint32_t>(data.size());
  if (!data.empty()) std::memcpy(hello.data, data.data(), data.size());
  const int descriptors[] = {words->number()};
  return send(socket, hello, descriptors);
}

Result<void> send_welcome(int socket, std::span<const std::byte> data, const PieceRings& channel,
                          std::uint32_t ring_slots, const RegionTable& regions) {
  const auto words = regions.words().read_only();
  if (!words) return std::unexpected(words.error());
  auto welcome = make<wire::FabricWelcome>(FabricPacket::welcome);
  welcome.format = wire::kFabricFormat;
  welcome.magic = wire::kFabricMagic;
  welcome.ring_slots = ring_slots;
  welcome.data_bytes = static_cast<std::uint32_t>(data.size());
  if (!data.empty()) std::memcpy(welcome.data, data.data(), data.size());
  const int descriptors[] = {channel.descriptor(), words->number()};
  return send(socket, welcome, descriptors);
}

// A peer that the refusal does not reach sees the socket close.
void send_refusal(int socket) {
  auto welcome = make<wire::FabricWelcome>(FabricPacket::welcome);
  welcome.format = wire::kFabricFormat;
  welcome.magic = wire::kFabricMagic;
  welcome.refused = 1;
  static_cast<void>(send(socket, welcome));
}

Result<void> send_ask(int socket, RegionKey key) {
  auto note = make<wire::FabricNote>(FabricPacket::ask);
  note.key = key;
  return send(socket, note);
}

Result<void> send_wake(int socket) {
  return send(socket, make<wire::FabricNote>(FabricPacket::wake));
}

Result<void> send_answer(int socket, RegionKey key, Domain domain, RegionTable& regions) {
  auto answer = make<wire::FabricAnswer>(FabricPacket::answer);
  answer.key = key;
  const auto mapping = regions.mapping(key, domain);
  if (!mapping) {
    const bool unknown = mapping.error().code == Code::not_found;
    const Status status = unknown ? Status::remote_access : Status::remote_operation;
    answer.status = static_cast<std::uint32_t>(status);
    return send(socket, answer);
  }
  answer.rights = static_cast<std::uint32_t>(mapping->rights);
  answer.base = mapping->remote.base;
  answer.bytes = mapping->remote.bytes;
  if (mapping->is_void) {
    answer.packet = static_cast<std::uint32_t>(FabricPacket::void_answer);
    return send(socket, answer);
  }
  answer.rights |= flags_of(mapping->placement);
  answer.descriptor_offset = mapping->descriptor_offset;
  const int descriptors[] = {mapping->descriptor.number()};
  return send(socket, answer, descriptors);
}

Result<Hello> read_hello(std::span<const std::byte> packet, Descriptor words) {
  const auto hello = read<wire::FabricHello>(packet, FabricPacket::hello);
  if (!hello || hello->magic != wire::kFabricMagic || hello->format != wire::kFabricFormat ||
      hello->data_bytes > kConnectDataMax) {
    return fail(Code::corrupt);
  }
  auto attached = attach_words(std::move(words));
  if (!attached) return std::unexpected(attached.error());
  return Hello{data_of(hello->data, hello->data_bytes), std::move(*attached)};
}

Result<Welcomed> read_welcome(std::span<const std::byte> packet,
                              std::span<Descriptor> descriptors) {
  const auto welcome = read<wire::FabricWelcome>(packet, FabricPacket::welcome);
  if (!welcome || welcome->magic != wire::kFabricMagic || welcome->format != wire::kFabricFormat ||
      welcome->data_bytes > kAcceptDataMax || descriptors.size() < kPacketDescriptorsMax) {
    return fail(Code::corrupt);
  }
  Welcomed welcomed;
  welcomed.refused = welcome->refused != 0;
  if (welcomed.refused) return welcomed;
  welcomed.data = data_of(welcome->data, welcome->data_bytes);
  auto channel = PieceRings::attach(std::move(descriptors[0]), welcome->ring_slots);
  if (!channel) return std::unexpected(channel.error());
  auto words = attach_words(std::move(descriptors[1]));
  if (!words) return std::unexpected(words.error());
  welcomed.channel = std::move(*channel);
  welcomed.words = std::move(*words);
  return welcomed;
}

Result<Mapped> read_answer(std::span<const std::byte> packet, Descriptor descriptor,
                           RegionKey asked) {
  if (const auto answer = read<wire::FabricAnswer>(packet, FabricPacket::void_answer)) {
    return read_void_answer(*answer, descriptor, asked);
  }
  const auto answer = read<wire::FabricAnswer>(packet, FabricPacket::answer);
  if (!answer || asked == 0 || answer->key != asked) return fail(Code::corrupt);
  Mapped mapped;
  if (answer->status != 0) {
    const bool unknown = answer->status == static_cast<std::uint32_t>(Status::remote_access);
    mapped.status = unknown ? Status::remote_access : Status::remote_operation;
    return mapped;
  }
  // Its bounds are those of its memory: attach() refuses what is longer than that.
  constexpr std::uint64_t kEndMax = MappingCache::kBytesMax;
  constexpr std::uint32_t kFlags = wire::kFabricPersistent | wire::kFabricPastCache;
  const std::uint32_t granted = answer->rights & ~kFlags;
  if (granted == 0 || granted > kAllRights || answer->bytes == 0 || answer->bytes > kEndMax ||
      answer->descriptor_offset > kEndMax - answer->bytes) {
    return fail(Code::corrupt);
  }
  const auto rights = static_cast<RemoteRights>(granted);
  const bool writes =
      includes(rights, RemoteRights::write) || includes(rights, RemoteRights::atomic);
  auto memory =
      SharedMemory::attach(std::move(descriptor), answer->descriptor_offset + answer->bytes,
                           writes ? memory::Rights::write : memory::Rights::read);
  if (!memory) {
    mapped.status = Status::remote_operation;
    return mapped;
  }
  memory->close_descriptor();
  mapped.window = {answer->base, answer->bytes, memory->at(answer->descriptor_offset), nullptr,
                   asked,        rights,        placement_in(answer->rights)};
  mapped.memory = std::move(*memory);
  return mapped;
}

}  // namespace espalier::fabric::shm
