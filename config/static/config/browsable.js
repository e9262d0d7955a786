"use strict";

/* Sends the forms of the browsable API as JSON. The answer to a form is a page like this one, made by the service: its
   part about the answer is shown below the form. No value is read as a JavaScript number, which has 53 bits: a number
   is sent as the text that was typed, and what nobody changed as the JSON that came from the service. */

const HTML = "text/html";

function controlOf(field) {
  return field.querySelector("input, textarea, select");
}

function startOf(control) {
  if (control.tagName !== "SELECT") return control.defaultValue;
  const start = [...control.options].find((option) => option.defaultSelected);
  return start ? start.value : "";
}

/* What browsers let pass as a number, and JSON does not: 007 and .5 */
function number(text) {
  return text.replace(/^(-?)0+(?=\d)/, "$1").replace(/^(-?)\./, (_, sign) => `${sign}0.`);
}

/* The JSON of a field; undefined where nothing stands for it. */
function jsonOf(field) {
  const { kind, present } = field.dataset;
  if (kind === "list") {
    const boxes = [...field.querySelectorAll("input")];
    if (boxes.every((box) => box.checked === box.defaultChecked)) return present;
    return JSON.stringify(boxes.filter((box) => box.checked).map((box) => box.value));
  }
  const control = controlOf(field);
  if (control.value === startOf(control)) return present;
  if (kind === "string") return control.tagName === "SELECT" && !control.value ? "null" : JSON.stringify(control.value);
  return control.value ? number(control.value) : "null";
}

/* The body of a form: all of its fields, or in a merge patch those that were changed. */
function bodyOf(form) {
  const members = [];
  for (const field of form.querySelectorAll("[data-name]")) {
    const json = jsonOf(field);
    if (json === undefined || (form.dataset.method === "PATCH" && json === field.dataset.present)) continue;
    // A default is asked for by leaving the field out; in a merge patch, by null.
    if (json === "null" && form.dataset.method !== "PATCH" && json !== field.dataset.present) continue;
    members.push(`  ${JSON.stringify(field.dataset.name)}: ${json}`);
  }
  return members.length ? `{\n${members.join(",\n")}\n}` : "{}";
}

function headersOf(form) {
  const headers = { Accept: HTML };
  const token = document.querySelector("meta[name=csrf-token]");
  if (token) headers["X-CSRFToken"] = token.content;
  if (form.dataset.type) headers["Content-Type"] = form.dataset.type;
  for (const field of form.querySelectorAll("[data-header]")) {
    if (controlOf(field).value) headers[field.dataset.header] = controlOf(field).value;
  }
  return headers;
}

function newKey() {
  if (crypto.randomUUID) return crypto.randomUUID();
  // Only https and this machine have it.
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function element(name, text = "", properties = {}) {
  return Object.assign(document.createElement(name), { textContent: text }, properties);
}

/* --- Problems, beside the fields they are about */

function tellProblem(field, message) {
  const problem = field.querySelector(".wrong");
  problem.textContent = problem.textContent ? `${problem.textContent} ${message}` : message;
  for (const control of field.querySelectorAll("input, textarea, select")) control.setAttribute("aria-invalid", "true");
}

function forgetProblems(form) {
  for (const problem of form.querySelectorAll(".wrong")) problem.textContent = "";
  for (const control of form.querySelectorAll("[aria-invalid]")) control.removeAttribute("aria-invalid");
}

function tellProblems(form, answer) {
  for (const item of answer.querySelectorAll("[data-field]")) {
    const name = item.dataset.field.split(".")[0];
    const field = [...form.querySelectorAll(".field")].find(
      ({ dataset }) => name && (dataset.name === name || dataset.header === name)
    );
    if (!field) continue;
    const code = item.querySelector("code");
    tellProblem(field, item.textContent.slice(code.textContent.length + 2));
    const link = element("a", code.textContent, { href: `#${controlOf(field).id}` });
    if (controlOf(field).id) code.replaceChildren(link);
  }
}

/* What the browser itself cannot read; its text is lost. */
function unreadable(form) {
  const fields = [...form.querySelectorAll("[data-name]")].filter((field) => controlOf(field).validity.badInput);
  for (const field of fields) tellProblem(field, "Must be a number.");
  return fields[0];
}

/* --- Sending */

/* An answer without a body is no page; so it is shown here. */
function bareAnswer(form, response) {
  const answer = element("section", "", { className: "answer" });
  const heading = element("h2", ` ${response.statusText}`, { tabIndex: -1 });
  heading.prepend(element("span", response.status, { className: `code code-${Math.floor(response.status / 100)}` }));
  const list = element("dl", "", { className: "headers" });
  for (const [name, value] of response.headers) {
    const line = element("div");
    line.append(element("dt", name), element("dd", value));
    list.append(line);
  }
  answer.append(heading, list);
  if (form.dataset.method === "DELETE" && response.ok) {
    const back = element("p", "It is gone. ");
    back.append(element("a", "Back to where it stood", { href: form.dataset.parent || "/" }));
    heading.after(back);
  }
  return answer;
}

function show(form, answer) {
  answer.removeAttribute("id");
  answer.setAttribute("aria-label", `Answer to ${form.dataset.method}`);
  form.parentElement.querySelector(".result").replaceChildren(answer);
  tellProblems(form, answer);
  answer.querySelector("h2").focus();
}

async function send(form) {
  forgetProblems(form);
  const sure = form.querySelector(".sure");
  if (sure && !sure.checked) {
    sure.setCustomValidity("Tick this box to delete it.");
    sure.reportValidity();
    return;
  }
  const wrong = unreadable(form);
  if (wrong) {
    controlOf(wrong).focus();
    return;
  }
  const { method, address } = form.dataset;
  const response = await fetch(address, { method, headers: headersOf(form), body: form.querySelector(".body")?.value });
  const text = await response.text();
  if (!text) {
    show(form, bareAnswer(form, response));
    return;
  }
  const page = new DOMParser().parseFromString(text, HTML);
  if (response.ok && (method === "PUT" || method === "PATCH")) {
    // The row as it is now, with its tag in all forms.
    document.querySelector("main").replaceWith(document.adoptNode(page.querySelector("main")));
    prepare();
    document.querySelector(".answer h2").focus();
  } else {
    show(form, document.adoptNode(page.querySelector(".answer")));
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
    const answer = element("section", "", { className: "answer" });
    answer.append(element("h2", "It was not sent, or there was no answer.", { tabIndex: -1 }), element("p", error.message));
    show(form, answer);
  } finally {
    button.disabled = false;
  }
}

/* --- The page */

function prepareForm(form) {
  const body = form.querySelector(".body");
  const compose = () => {
    if (body) body.value = bodyOf(form);
  };
  for (const field of form.querySelectorAll("[data-name]")) {
    field.addEventListener("input", compose);
  }
  compose();
  const key = form.querySelector(".fresh");
  if (key) {
    key.value = newKey();
    form.querySelector(".new-key").addEventListener("click", () => {
      key.value = newKey();
    });
  }
  const sure = form.querySelector(".sure");
  if (sure) sure.addEventListener("input", () => sure.setCustomValidity(""));
  form.addEventListener("submit", submit);
  form.querySelector(".send").disabled = false;
}

function prepare() {
  for (const form of document.querySelectorAll("form.sent")) prepareForm(form);
  for (const form of document.querySelectorAll("form.query")) {
    form.addEventListener("formdata", ({ formData }) => {
      // Empty is no filter; an empty cursor is the beginning of the list.
      for (const [name, value] of [...formData]) if (!value && name !== "cursor") formData.delete(name);
    });
  }
  // Where there is little room, the answer comes first.
  if (matchMedia("(max-width: 60rem)").matches) {
    for (const tool of document.querySelectorAll("#list[open]")) tool.open = false;
  }
}

prepare();
