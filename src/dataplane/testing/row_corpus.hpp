// SPDX-License-Identifier: Apache-2.0
// For tests: what comes to each of three switches in a row, and what each runs with. Files of it
// lie beside those of frame_corpus.hpp; a frame that is dropped is one without bytes there. Shims
// and checksums are worked out here from their definitions (docs/formats/index_shim.md).
//
// Thread: any.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "dataplane/packet_function.hpp"
#include "dataplane/switch_program.hpp"
#include "fabric/roce/testing/capture.hpp"

namespace espalier::dataplane {

struct RowCorpusFile {
  std::string name;
  SwitchProgram program;
  Hop hop;
  fabric::roce::CapturedFrames frames;
};

/// row_first, row_middle and row_last: READs without a shim, with right ones, and with those that
/// are of another generation, server or node, have no hops left, or are damaged.
[[nodiscard]] std::array<RowCorpusFile, 3> row_corpus_files();
/// The tables of all three.
[[nodiscard]] SwitchProgram row_corpus_whole();

/// A frame with a shim of these bytes. `frame`: a READ, with nothing behind it.
[[nodiscard]] std::vector<std::byte> with_shim_by_definition(
    const std::vector<std::byte>& frame, const std::array<std::uint8_t, 16>& shim);

}  // namespace espalier::dataplane
