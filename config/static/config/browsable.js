"use strict";

/* Sends the forms of the browsable API as JSON. The service answers with a page like this one, whose section about the
   answer is shown below the form. No value is parsed as a JavaScript number, which has 53 bits: a number is sent as the
   text that was typed, and an unchanged value as the JSON that came from the service. */

const HTML = "text/html";

function getControl(field) {
  return field.querySelector("input, textarea, select");
}

function getInitialValue(control) {
  if (control.tagName !== "SELECT") return control.defaultValue;
  const start = [...control.options].find((option) => option.defaultSelected);
  return start ? start.value : "";
}

/* Browsers accept 007 and .5 as numbers; JSON does not. */
function normalizeNumber(text) {
  return text.replace(/^(-?)0+(?=\d)/, "$1").replace(/^(-?)\./, (_, sign) => `${sign}0.`);
}

/* The JSON of a field; undefined if it has no value and had none. */
function getJson(field) {
  const { kind, present } = field.dataset;
  if (kind === "list") {
    const boxes = [...field.querySelectorAll("input")];
    if (boxes.every((box) => box.checked === box.defaultChecked)) return present;
    return JSON.stringify(boxes.filter((box) => box.checked).map((box) => box.value));
  }
  const control = getControl(field);
  if (control.value === getInitialValue(control)) return present;
  if (kind === "string") return control.tagName === "SELECT" && !control.value ? "null" : JSON.stringify(control.value);
  return control.value ? normalizeNumber(control.value) : "null";
}

/* The body of a form: all of its fields, or in a merge patch the changed ones. */
function buildBody(form) {
  const members = [];
  for (const field of form.querySelectorAll("[data-name]")) {
    const json = getJson(field);
    if (json === undefined || (form.dataset.method === "PATCH" && json === field.dataset.present)) continue;
    // A field returns to its default when it is left out; in a merge patch, when it is null.
    if (json === "null" && form.dataset.method !== "PATCH" && json !== field.dataset.present) continue;
    members.push(`  ${JSON.stringify(field.dataset.name)}: ${json}`);
  }
  return members.length ? `{\n${members.join(",\n")}\n}` : "{}";
}

/* --- Who asks: the session of this browser, or without one the reader's key */

function getToken() {
  return document.querySelector("meta[name=csrf-token]");
}

function buildCallerHeaders(mediaType = HTML) {
  return readKey() && !getToken() ? { Accept: mediaType, "X-API-Key": readKey() } : { Accept: mediaType };
}

/* A browser asks for a page without the key. What it was refused is asked for again with it. */
async function readWithKey() {
  const response = await fetch(location.href, { headers: buildCallerHeaders(), credentials: "omit" });
  const page = new DOMParser().parseFromString(await response.text(), HTML);
  document.title = page.title;
  for (const part of ["header.shell", "main"]) {
    document.querySelector(part).replaceWith(document.adoptNode(page.querySelector(part)));
  }
  prepare();
  const heading = document.querySelector(".answer h2");
  if (response.status === 401) {
    document.querySelector(".problem").append(createKeyForm());
  } else {
    heading.before(createKeyNotice());
  }
  heading.focus();
}

function createKeyNotice() {
  const notice = createElement("p", `You are using API key ${readKey().slice(0, 8)}… `, { className: "notice" });
  const button = createElement("button", "Forget this key", { type: "button", className: "small quiet" });
  button.addEventListener("click", () => {
    keepKey(null);
    location.reload();
  });
  notice.append(button);
  return notice;
}

function createKeyForm() {
  const form = createElement("form", "", { className: "key-form", autocomplete: "off" });
  const label = createElement("label", "Or enter an API key. It is kept until you close this tab.", { htmlFor: "key" });
  const field = createElement("input", "", { id: "key", required: true, spellcheck: false });
  form.append(label, field, createElement("button", "Use the key"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    keepKey(field.value.trim());
    readWithKey().catch((error) => form.append(createElement("p", error.message, { className: "wrong" })));
  });
  return form;
}

function prepareKey() {
  if (getToken() || !document.querySelector("#answer .code")?.textContent.startsWith("401")) return;
  document.querySelector(".problem").append(createKeyForm());
  if (readKey()) readWithKey();
}

function buildHeaders(form) {
  const headers = buildCallerHeaders();
  const token = getToken();
  if (token) headers["X-CSRFToken"] = token.content;
  if (form.dataset.type) headers["Content-Type"] = form.dataset.type;
  for (const field of form.querySelectorAll("[data-header]")) {
    if (getControl(field).value) headers[field.dataset.header] = getControl(field).value;
  }
  return headers;
}

function createElement(name, text = "", properties = {}) {
  return Object.assign(document.createElement(name), { textContent: text }, properties);
}

/* --- Problems, next to their fields */

function showProblem(field, message) {
  const problem = field.querySelector(".wrong");
  problem.textContent = problem.textContent ? `${problem.textContent} ${message}` : message;
  for (const control of field.querySelectorAll("input, textarea, select")) control.setAttribute("aria-invalid", "true");
}

function clearProblems(form) {
  for (const problem of form.querySelectorAll(".wrong")) problem.textContent = "";
  for (const control of form.querySelectorAll("[aria-invalid]")) control.removeAttribute("aria-invalid");
}

function showProblems(form, answer) {
  for (const item of answer.querySelectorAll("[data-field]")) {
    const name = item.dataset.field.split(".")[0];
    const field = [...form.querySelectorAll(".field")].find(
      ({ dataset }) => name && (dataset.name === name || dataset.header === name)
    );
    if (!field) continue;
    const code = item.querySelector("code");
    showProblem(field, item.textContent.slice(code.textContent.length + 2));
    const link = createElement("a", code.textContent, { href: `#${getControl(field).id}` });
    if (getControl(field).id) code.replaceChildren(link);
  }
}

/* The first field whose text the browser could not parse, and so does not give to a script. */
function findUnreadable(form) {
  const fields = [...form.querySelectorAll("[data-name]")].filter((field) => getControl(field).validity.badInput);
  for (const field of fields) showProblem(field, "Must be a number.");
  return fields[0];
}

/* --- Sending */

/* An answer without a body is no page, so it is rendered here. */
function renderEmptyAnswer(form, response) {
  const answer = createElement("section", "", { className: "answer" });
  const heading = createElement("h2", ` ${response.statusText}`, { tabIndex: -1 });
  const className = `code code-${Math.floor(response.status / 100)}`;
  heading.prepend(createElement("span", response.status, { className }));
  const list = createElement("dl", "", { className: "headers" });
  for (const [name, value] of response.headers) {
    const line = createElement("div");
    line.append(createElement("dt", name), createElement("dd", value));
    list.append(line);
  }
  answer.append(heading, list);
  if (form.dataset.method === "DELETE" && response.ok) {
    const back = createElement("p", "Deleted. ");
    back.append(createElement("a", "Back to the list", { href: form.dataset.parent || "/" }));
    heading.after(back);
  }
  return answer;
}

function showAnswer(form, answer, status) {
  answer.removeAttribute("id");
  answer.setAttribute("aria-label", `Answer to ${form.dataset.method}`);
  form.parentElement.querySelector(".result").replaceChildren(answer);
  prepareSecrets();
  showProblems(form, answer);
  const takesEdits = form.querySelector("[data-name]");
  if (status === 412 && takesEdits) answer.querySelector(".problem").append(createReloadButton(form));
  answer.querySelector("h2").focus();
}

/* --- After 412: the present state, with what was typed */

function createReloadButton(form) {
  const button = createElement("button", "Reload and keep my changes", { type: "button", className: "button" });
  button.addEventListener("click", () => reloadWithEdits(form).catch((error) => button.after(error.message)));
  return button;
}

function getEdits(form) {
  const controls = [...form.querySelectorAll("[data-name]")].map((field) => [field.dataset.name, getControl(field)]);
  return controls
    .filter(([, control]) => control.type !== "checkbox" && control.value !== getInitialValue(control))
    .map(([name, control]) => ({ name, typed: control.value, before: getInitialValue(control) }));
}

async function reloadWithEdits(form) {
  const { method, address } = form.dataset;
  const edits = getEdits(form);
  const response = await fetch(address, { headers: buildCallerHeaders() });
  const page = new DOMParser().parseFromString(await response.text(), HTML);
  const tool = page.querySelector(`form.sent[data-method="${method}"]`)?.closest("details");
  if (!tool) throw new Error(` Reloading failed: ${response.status} ${response.statusText}`);
  tool.open = true;
  document.querySelector("main").replaceWith(document.adoptNode(page.querySelector("main")));
  prepare();
  const fresh = document.querySelector(`form.sent[data-method="${method}"]`);
  for (const { name, typed, before } of edits) {
    const field = fresh.querySelector(`[data-name="${CSS.escape(name)}"]`);
    const control = getControl(field);
    const present = getInitialValue(control);
    control.value = typed;
    control.dispatchEvent(new Event("input", { bubbles: true }));
    if (present !== before && present !== typed) showProblem(field, `Someone else changed this to: ${present || "nothing"}`);
  }
  const kept = edits.map(({ name }) => name).join(", ") || "none";
  const note = createElement("p", `This is the current version. Your unsaved changes: ${kept}.`, { className: "notice", tabIndex: -1 });
  fresh.prepend(note);
  note.focus();
}

/* --- The same request for a shell */

function quoteForShell(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/* curl takes brackets and braces for ranges and sets of addresses. */
function encodeForCurl(address) {
  return address.replace(/[[\]{}]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
}

function buildCurl(method, address, headers = {}, body = undefined) {
  const parts = method === "GET" ? ["curl"] : ["curl", "-X", method];
  // The variable is for the reader's own key: the session of this browser stays here.
  parts.push("-H", '"X-API-Key: $KEY"');
  for (const [name, value] of Object.entries(headers)) parts.push("-H", quoteForShell(`${name}: ${value}`));
  if (body !== undefined) parts.push("-d", quoteForShell(body));
  parts.push(quoteForShell(location.origin + encodeForCurl(address)));
  return parts.join(" ");
}

function getCurl(form) {
  const { method, address } = form.dataset;
  const { Accept, "X-CSRFToken": token, "X-API-Key": key, ...headers } = buildHeaders(form);
  return buildCurl(method, address, headers, form.querySelector(".body")?.value);
}

function createCopyButton(getText) {
  const button = createElement("button", "Copy as curl", { type: "button", className: "small quiet copy" });
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(getText());
    button.textContent = "Copied";
    setTimeout(() => {
      button.textContent = "Copy as curl";
    }, 2000);
  });
  return button;
}

async function send(form) {
  clearProblems(form);
  const sure = form.querySelector(".sure");
  if (sure && !sure.checked) {
    sure.setCustomValidity("Select this box to confirm.");
    sure.reportValidity();
    return;
  }
  const wrong = findUnreadable(form);
  if (wrong) {
    getControl(wrong).focus();
    return;
  }
  const { method, address } = form.dataset;
  const body = form.querySelector(".body")?.value;
  const response = await fetch(address, { method, headers: buildHeaders(form), body });
  const text = await response.text();
  if (!text) {
    showAnswer(form, renderEmptyAnswer(form, response));
    return;
  }
  const page = new DOMParser().parseFromString(text, HTML);
  if (response.ok && (method === "PUT" || method === "PATCH")) {
    // The page has the current row, with its entity tag in all forms.
    document.querySelector("main").replaceWith(document.adoptNode(page.querySelector("main")));
    prepare();
    document.querySelector(".answer h2").focus();
  } else {
    showAnswer(form, document.adoptNode(page.querySelector(".answer")), response.status);
  }
}

async function submit(event) {
  event.preventDefault();
  const form = event.currentTarget;
  const button = form.querySelector(".send");
  button.disabled = true;
  try {
    await send(form);
  } catch (error) {
    const answer = createElement("section", "", { className: "answer" });
    const heading = createElement("h2", "The request failed: no response.", { tabIndex: -1 });
    answer.append(heading, createElement("p", error.message));
    showAnswer(form, answer);
  } finally {
    button.disabled = false;
  }
}

/* --- Whole lists */

/* A link cannot ask for a media type. A stream that is cut off rejects, and leaves no file that seems complete. An error
   comes as a page: that of a 401 challenges for no Basic, for which a browser opens a dialog of its own. */
async function download(event) {
  const button = event.currentTarget;
  const tools = button.closest(".downloads");
  const told = tools.querySelector("[role=status]");
  button.disabled = true;
  told.textContent = "Downloading…";
  try {
    const { address } = tools.dataset;
    const response = await fetch(address, { headers: buildCallerHeaders(`${button.dataset.type}, ${HTML};q=0.1`) });
    if (!response.ok) {
      const page = new DOMParser().parseFromString(await response.text(), HTML);
      throw new Error(page.querySelector(".problem strong")?.textContent ?? response.statusText);
    }
    const file = URL.createObjectURL(await response.blob());
    const name = new URL(address, location.href).pathname.split("/").pop();
    createElement("a", "", { href: file, download: `${name}.${button.textContent.toLowerCase()}` }).click();
    URL.revokeObjectURL(file);
    told.textContent = "Saved.";
  } catch (error) {
    told.textContent = `Download failed: ${error.message}`;
  } finally {
    button.disabled = false;
  }
}

/* --- The page */

function prepareForm(form) {
  const body = form.querySelector(".body");
  const compose = () => {
    if (body) body.value = buildBody(form);
  };
  for (const field of form.querySelectorAll("[data-name]")) {
    field.addEventListener("input", compose);
  }
  compose();
  const key = form.querySelector(".fresh");
  if (key) {
    key.value = createKey();
    form.querySelector(".new-key").addEventListener("click", () => {
      key.value = createKey();
    });
  }
  const sure = form.querySelector(".sure");
  if (sure) sure.addEventListener("input", () => sure.setCustomValidity(""));
  form.addEventListener("submit", submit);
  form.querySelector(".send").disabled = false;
  form.querySelector(".send").after(createCopyButton(() => getCurl(form)));
}

function prepare() {
  const shown = document.querySelector("#answer .request");
  const [method, address] = ["method", "address"].map((name) => shown?.dataset[name]);
  if (method === "GET") shown.append(" ", createCopyButton(() => buildCurl(method, address)));
  for (const form of document.querySelectorAll("form.sent")) prepareForm(form);
  for (const button of document.querySelectorAll(".downloads button")) button.addEventListener("click", download);
  for (const form of document.querySelectorAll("form.query")) {
    form.addEventListener("formdata", ({ formData }) => {
      // An empty filter is none; an empty cursor begins the list.
      for (const [name, value] of [...formData]) if (!value && name !== "cursor") formData.delete(name);
    });
  }
  // On a narrow screen the answer comes first.
  if (matchMedia("(max-width: 60rem)").matches) {
    for (const tool of document.querySelectorAll("#list[open]")) tool.open = false;
  }
}

prepare();
prepareKey();
