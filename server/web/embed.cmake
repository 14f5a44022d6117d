# cmake -DOUTPUT=page_files.cc -DFOLDER=page -P embed.cmake: writes the page's files as C++. "+" joins files into one.
set(rows "")
foreach(row "/|index.html|text/html" "/app.js|app.js+lists.js+job.js+results.js+places.js|text/javascript" "/style.css|style.css|text/css"
            "/icon.svg|icon.svg|image/svg+xml")
  string(REPLACE "|" ";" row ${row})
  list(GET row 0 path)
  list(GET row 1 file)
  list(GET row 2 type)
  string(REPLACE "+" ";" parts ${file})
  set(bytes "")
  foreach(part ${parts})
    file(READ ${FOLDER}/${part} more HEX)
    string(APPEND bytes "${more}")
  endforeach()
  string(LENGTH "${bytes}" digits)
  math(EXPR size "${digits} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" bytes "${bytes}")
  string(APPEND rows "    PageFile{\"${path}\", \"${type}; charset=utf-8\", std::string_view(\"${bytes}\", ${size})},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"server/web/page_files.h\"

#include <array>

namespace mendel::server {

constexpr std::array kFiles = {
${rows}};

const PageFile* FindPageFile(std::string_view path) {
  for (const PageFile& file : kFiles) {
    if (file.path == path) return &file;
  }
  return nullptr;
}

}  // namespace mendel::server
")
