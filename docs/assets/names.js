// The theme leaves its search dialog without a name for screen readers.
document.querySelector(".md-search")?.setAttribute("aria-label", "Search")

// Copying a console block copies its commands: neither prompts nor what they print.
const commandsOf = (text) =>
  text
    .split("\n")
    .filter((line) => /^[$>] /.test(line))
    .map((line) => line.slice(2))
    .join("\n")
document.addEventListener(
  "click",
  (event) => {
    const button = event.target.closest?.(".md-clipboard, .md-code__button[data-md-type=copy]")
    const block = button?.closest(".language-console")
    if (!block) return
    const commands = commandsOf(block.querySelector("code").innerText)
    if (commands) button.setAttribute("data-clipboard-text", commands)
  },
  true,
)

// A browser does not let a page that was opened from a folder read the search index.
if (location.protocol === "file:") {
  const note = document.createElement("p")
  note.className = "folder-note"
  note.textContent =
    "Opened from a folder: everything but the search works. For the search run " +
    "“python -m http.server --directory site” beside the folder and open http://localhost:8000."
  document.querySelector(".md-content__inner")?.prepend(note)
}
