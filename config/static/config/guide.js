"use strict";

/** The guide: the reader's language, buttons that copy, and the search. Without this script all can be read. */

const LANGUAGE = "guide-language";
const MAX_RESULTS = 12;

const create = (tag, properties) => Object.assign(document.createElement(tag), properties);

// A language is chosen once for all examples, and remembered.
const choose = (language) => {
  for (const choice of document.querySelectorAll(`.languages input[value="${CSS.escape(language)}"]`)) choice.checked = true;
};
const remembered = localStorage.getItem(LANGUAGE);
if (remembered) choose(remembered);
document.addEventListener("change", ({ target }) => {
  if (!target.matches(".languages input")) return;
  // What the reader looks at stays where it is, although examples above it change their length.
  const before = target.getBoundingClientRect().top;
  choose(target.value);
  localStorage.setItem(LANGUAGE, target.value);
  scrollBy(0, target.getBoundingClientRect().top - before);
});

const said = create("p", { className: "unseen", role: "status" });
document.body.append(said);

for (const block of document.querySelectorAll(".example > .call, main > pre")) {
  const button = create("button", { type: "button", className: "copy small quiet", textContent: "Copy" });
  const text = block.textContent;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text.trimEnd());
    button.textContent = "Copied";
    said.textContent = "Copied";
    setTimeout(() => {
      button.textContent = "Copy";
      said.textContent = "";
    }, 2000);
  });
  block.append(button);
}

/** The search: all words have to be in a section; one in its title counts more. */

const place = document.querySelector(".search");
let index = null;

const weigh = (section, words) => {
  const [title, text] = [`${section.page} ${section.title}`.toLowerCase(), section.text.toLowerCase()];
  let weight = 0;
  for (const word of words) {
    if (title.includes(word)) weight += 10;
    else if (text.includes(word)) weight += 1;
    else return 0;
  }
  return weight;
};

const excerpt = ({ text }, [word]) => {
  const position = text.toLowerCase().indexOf(word);
  const start = position < 40 ? 0 : text.lastIndexOf(" ", position - 30) + 1;
  return `${start ? "… " : ""}${text.slice(start, start + 110)}${text.length > start + 110 ? " …" : ""}`;
};

const search = async () => {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  results.replaceChildren();
  if (!words.length) {
    told.textContent = "";
    return;
  }
  index ??= fetch(place.dataset.index).then((answer) => answer.json());
  const sections = await index;
  const found = sections
    .map((section) => [weigh(section, words), section])
    .filter(([weight]) => weight)
    .sort(([one], [other]) => other - one)
    .slice(0, MAX_RESULTS);
  told.textContent = found.length ? `${found.length} ${found.length === 1 ? "place" : "places"}` : "Nothing found";
  results.replaceChildren(
    ...found.map(([, section]) => {
      const link = create("a", { href: section.address });
      link.append(create("strong", { textContent: section.title || section.page }));
      if (section.title) link.append(create("span", { textContent: section.page }));
      link.append(create("small", { textContent: excerpt(section, words) }));
      const entry = create("li");
      entry.append(link);
      return entry;
    }),
  );
};

const form = create("form", { role: "search" });
const label = create("label", { htmlFor: "search", textContent: "Search the guide" });
const field = create("input", { id: "search", type: "search", autocomplete: "off", spellcheck: false });
const told = create("p", { role: "status" });
const results = create("ol");
form.append(label, field, told, results);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  results.querySelector("a")?.click();
});
field.addEventListener("input", search);
form.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    field.value = "";
    search();
    field.focus();
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.closest("input, textarea, select")) {
    event.preventDefault();
    field.focus();
  }
});
place.append(form);
