// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/library.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <sys/socket.h>

#include <cstring>
#include <string>

#include "base/loaded_library.hpp"
#include "fabric/roce/udp_address.hpp"
#include "wire/fabric_ofi.hpp"

namespace espalier::fabric::ofi {
namespace {

// What this is written for; older libraries have other structures.
constexpr std::uint32_t kMajor = 1;
constexpr std::uint32_t kMinor = 17;
constexpr std::uint32_t kVersion = kMajor << 16 | kMinor;

// The provider's kind of memory keys does not matter here, for no peer of ours ever uses them.
constexpr int kMemoryModes = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;

std::unexpected<Error> is_unsupported(Unsupported what) {
  return fail(Code::unsupported, static_cast<std::uint32_t>(what));
}

std::string host_text(const roce::IpAddress& ip) {
  char text[INET6_ADDRSTRLEN] = {};
  ::inet_ntop(ip.is_v6 ? AF_INET6 : AF_INET, ip.bytes.data(), text, sizeof text);
  return text;
}

// What verbs asks of its users: receives for numbers that come with WRITEs of its own. Here are no
// such WRITEs.
constexpr std::uint64_t kModes = FI_RX_CQ_DATA;

bool is_enough(const fi_info& info) {
  return (info.mode & ~kModes) == 0 && (info.domain_attr->mr_mode & ~kMemoryModes) == 0 &&
         info.ep_attr->max_msg_size >= wire::ofi::kFrameBytesMax &&
         info.tx_attr->size >= wire::ofi::kFrames && info.rx_attr->size >= wire::ofi::kFrames;
}

}  // namespace

std::string_view explain(Unsupported unsupported_reason) {
  switch (unsupported_reason) {
    case Unsupported::none: break;
    case Unsupported::library:
      return "libfabric.so.1 cannot be loaded; Debian's package libfabric1 has it.";
    case Unsupported::version: return "libfabric is older than 1.17.";
    case Unsupported::provider:
      return "libfabric has no provider of this name that makes connections (FI_EP_MSG) and "
             "reaches this address; fi_info, of Debian's package libfabric-bin, lists them.";
    case Unsupported::features:
      return "The provider of libfabric cannot carry messages of 8 KiB, 16 each way, or wants of "
             "its users what Espalier does not do.";
  }
  return "Nothing is missing.";
}

Result<std::shared_ptr<const Library>> Library::load(const char* name) {
  const base::LoadedLibrary library(name);
  if (!library) return is_unsupported(Unsupported::library);
  Functions made;
  decltype(&fi_version) version = nullptr;
  const bool whole = library.find("fi_getinfo", "FABRIC_1.3", made.get_info) &&
                     library.find("fi_freeinfo", "FABRIC_1.3", made.free_info) &&
                     library.find("fi_dupinfo", "FABRIC_1.3", made.copy_info) &&
                     library.find("fi_fabric", "FABRIC_1.1", made.fabric) &&
                     library.find("fi_version", "FABRIC_1.0", version);
  if (!whole || version() < kVersion) return is_unsupported(Unsupported::version);
  return std::make_shared<const Library>(made);
}

Result<Info> Library::find(std::string_view provider, const roce::PortAddress& where,
                           bool listens) const {
  const Info wanted(*this, functions_.copy_info(nullptr));
  if (wanted.get() == nullptr) return refused(-FI_ENOMEM);
  wanted->caps = FI_MSG;
  wanted->mode = kModes;
  wanted->ep_attr->type = FI_EP_MSG;
  wanted->fabric_attr->prov_name = ::strdup(std::string(provider).c_str());
  wanted->domain_attr->mr_mode = kMemoryModes;
  wanted->domain_attr->threading = FI_THREAD_DOMAIN;
  // The endpoint's thread makes progress; a hidden thread would only compete with it.
  wanted->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  wanted->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  wanted->tx_attr->size = wire::ofi::kFrames;
  wanted->rx_attr->size = wire::ofi::kFrames;
  wanted->tx_attr->msg_order = FI_ORDER_SAS;
  wanted->rx_attr->msg_order = FI_ORDER_SAS;
  fi_info* found = nullptr;
  const int answer = functions_.get_info(
      kVersion, host_text(where.ip).c_str(), std::to_string(where.udp_port).c_str(),
      FI_NUMERICHOST | (listens ? FI_SOURCE : 0), wanted.get(), &found);
  if (answer == -FI_ENODATA || answer == -FI_ENOSYS) return is_unsupported(Unsupported::provider);
  if (answer != 0) return refused(answer);
  Info info(*this, found);
  if (!is_enough(*info.get())) return is_unsupported(Unsupported::features);
  return info;
}

Result<fid_fabric*> Library::open_fabric(fi_info& info) const {
  fid_fabric* fabric = nullptr;
  const int answer = functions_.fabric(info.fabric_attr, &fabric, nullptr);
  if (answer != 0) return refused(answer);
  return fabric;
}

}  // namespace espalier::fabric::ofi
