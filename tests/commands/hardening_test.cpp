// SPDX-License-Identifier: Apache-2.0
// Hardening of the programs: the flags that their ELF files show.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace espalier::test {
namespace {

/// An ELF file of this machine's kind, as far as its headers lead.
class ElfFile {
 public:
  explicit ElfFile(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    if (bytes_.size() < sizeof(Elf64_Ehdr) || bytes_.substr(0, SELFMAG) != ELFMAG) return;
    const auto header = at<Elf64_Ehdr>(0);
    type_ = header.e_type;
    for (std::size_t i = 0; i < header.e_shnum; ++i) {
      sections_.push_back(at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
    }
    for (std::size_t i = 0; i < header.e_phnum; ++i) {
      segments_.push_back(at<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr)));
    }
  }

  [[nodiscard]] int type() const { return type_; }
  [[nodiscard]] const Elf64_Phdr* segment(std::uint32_t type) const {
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type == type) return &segment;
    }
    return nullptr;
  }
  /// An entry of the dynamic section; 0: none.
  [[nodiscard]] std::uint64_t dynamic(std::int64_t tag) const {
    const Elf64_Phdr* const section = segment(PT_DYNAMIC);
    if (section == nullptr) return 0;
    for (std::uint64_t i = 0; i < section->p_filesz / sizeof(Elf64_Dyn); ++i) {
      const auto entry = at<Elf64_Dyn>(section->p_offset + i * sizeof(Elf64_Dyn));
      if (entry.d_tag == tag) return entry.d_un.d_val;
    }
    return 0;
  }
  /// The names of its imported and exported symbols, concatenated.
  [[nodiscard]] std::string_view dynamic_names() const {
    return std::string_view(bytes_).substr(file_offset(dynamic(DT_STRTAB)), dynamic(DT_STRSZ));
  }
  /// The x86 features that all of its code supports (GNU_PROPERTY_X86_FEATURE_1_AND).
  [[nodiscard]] std::uint32_t x86_features() const {
    constexpr std::uint32_t kGnuProperty = 0x6474E553;  // PT_GNU_PROPERTY
    constexpr std::uint32_t kFeatures = 0xC0000002;
    const Elf64_Phdr* const note = segment(kGnuProperty);
    if (note == nullptr) return 0;
    // Behind the note's header and its name, "GNU": type, bytes, value, to a multiple of 8 bytes.
    std::uint64_t place = note->p_offset + sizeof(Elf64_Nhdr) + 4;
    while (place + 12 <= note->p_offset + note->p_filesz) {
      const auto type = at<std::uint32_t>(place);
      const auto bytes = at<std::uint32_t>(place + 4);
      if (type == kFeatures) return at<std::uint32_t>(place + 8);
      place += 8 + (bytes + 7) / 8 * 8;
    }
    return 0;
  }

  /// The project's functions that more than one source may call, and so may call by an address.
  struct Functions {
    std::size_t all = 0;
    std::size_t marked = 0;  ///< begin with ENDBR64, the one instruction that IBT lets calls reach
  };
  [[nodiscard]] Functions own_functions() const {
    constexpr std::string_view kEndbr64 = "\xF3\x0F\x1E\xFA";
    const std::string_view bytes = bytes_;
    Functions found;
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != SHT_SYMTAB) continue;
      const std::uint64_t names = sections_.at(section.sh_link).sh_offset;
      for (std::uint64_t i = 0; i < section.sh_size / sizeof(Elf64_Sym); ++i) {
        const auto symbol = at<Elf64_Sym>(section.sh_offset + i * sizeof(Elf64_Sym));
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF) continue;
        if (ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) continue;
        const std::string_view name = bytes.substr(names + symbol.st_name);
        if (!name.substr(0, name.find('\0')).contains("8espalier")) continue;
        ++found.all;
        if (bytes.substr(file_offset(symbol.st_value)).starts_with(kEndbr64)) ++found.marked;
      }
    }
    return found;
  }

 private:
  template <class T>
  [[nodiscard]] T at(std::uint64_t offset) const {
    T value{};
    if (offset + sizeof value <= bytes_.size()) {
      std::memcpy(&value, bytes_.data() + offset, sizeof value);
    }
    return value;
  }
  [[nodiscard]] std::uint64_t file_offset(std::uint64_t address) const {
    for (const Elf64_Phdr& segment : segments_) {
      const bool here = segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
                        address - segment.p_vaddr < segment.p_filesz;
      if (here) return segment.p_offset + (address - segment.p_vaddr);
    }
    return 0;
  }

  std::string bytes_;
  int type_ = ET_NONE;
  std::vector<Elf64_Phdr> segments_;
  std::vector<Elf64_Shdr> sections_;
};

#ifdef ESPALIER_HARDENED
void expect_hardened(const char* path) {
  SCOPED_TRACE(path);
  const ElfFile program(path);
  EXPECT_EQ(program.type(), ET_DYN) << "it lies at the same address each time";
  EXPECT_NE(program.segment(PT_GNU_RELRO), nullptr);
  EXPECT_NE(program.dynamic(DT_FLAGS_1) & DF_1_NOW, 0u) << "its tables stay writable";
  const Elf64_Phdr* const stack = program.segment(PT_GNU_STACK);
  ASSERT_NE(stack, nullptr);
  EXPECT_EQ(stack->p_flags & PF_X, 0u);
  EXPECT_NE(program.dynamic_names().find("__stack_chk_fail"), std::string_view::npos);
#ifdef __x86_64__
  EXPECT_EQ(program.x86_features() & 3u, 3u) << "IBT and shadow stacks";
  // The linker is forced to set these flags; only the code shows what the compiler did.
  const ElfFile::Functions functions = program.own_functions();
  EXPECT_NE(functions.all, 0u);
  EXPECT_EQ(functions.marked, functions.all);
#endif
}

TEST(Hardening, ProgramsAreLinkedSoThatFaultsAreHardToUse) {
  expect_hardened(ESPALIER_PROGRAM);
  expect_hardened(ESPALIER_LINEITEM);
  // Those of its calls whose room the compiler knows and whose length it does not.
  EXPECT_NE(ElfFile(ESPALIER_PROGRAM).dynamic_names().find("__memcpy_chk"), std::string_view::npos)
      << "calls of the C library are not checked";
}

#ifdef ESPALIER_BENCH
TEST(Hardening, SoAreTheBenchmarks) { expect_hardened(ESPALIER_BENCH); }
#endif
#endif

}  // namespace
}  // namespace espalier::test
