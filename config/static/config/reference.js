"use strict";

/** The reference: an index of all endpoints, and the one that is chosen, shown by Swagger UI.

    Swagger UI blocks a phone for seconds. It is loaded when an endpoint is chosen, and given no more than that one: what
    it takes grows with the document. */

const LANGUAGE = "guide-language";
const LANGUAGES = { curl: "curl", python: "Python", javascript: "JavaScript" };

const viewer = document.querySelector(".viewer");
const place = document.getElementById("swagger-ui");
const index = viewer.querySelector(".index");
const chosen = viewer.querySelector(".chosen");
const said = viewer.querySelector(".said");
const start_ = viewer.querySelector(".start");
const folded = viewer.querySelector(".folded");
const create = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};

/* The credentials that were given here. */
const used = new Set();
const tellUsed = () => {
  viewer.querySelector(".used").textContent = used.size ? `Authorized with ${[...used].join(" and ")}.` : "";
};

/* --- Swagger UI, put right where its own markup keeps people out who use a keyboard or a screen reader */

const ours = ({ React, getComponent }) => {
  const e = React.createElement;

  // Its own layout has a <main> and an <h1>, which stand beside those of the page, and all endpoints at once.
  const ReferenceLayout = ({ getComponent, specSelectors }) =>
    e(
      "div",
      { className: "swagger-ui" },
      e(getComponent("SvgAssets", true)),
      e(getComponent("AuthorizeBtnContainer", true)),
      specSelectors.paths().size ? e(getComponent("operations", true)) : null,
    );

  const Snippets = ({ request }) => {
    const [language, choose] = React.useState(localStorage.getItem(LANGUAGE) ?? "curl");
    const { method, url, headers = {}, body } = request.toJS();
    const text = snippets[language]({ method: method.toUpperCase(), url: new URL(url, location.href).href, headers: Object.entries(headers), body });
    const choice = ([value, name]) =>
      e("label", { key: value }, e("input", {
        type: "radio",
        name: "language",
        value,
        checked: value === language,
        onChange: () => {
          localStorage.setItem(LANGUAGE, value);
          choose(value);
        },
      }), ` ${name}`);
    return e(
      "div",
      { className: "example request" },
      e("fieldset", { className: "languages" }, e("legend", { className: "unseen" }, "Language of the request"), ...Object.entries(LANGUAGES).map(choice)),
      e("pre", { tabIndex: 0, "aria-label": `The request in ${LANGUAGES[language]}` }, e("code", null, text)),
      e(CopyButton, { text, key: language }),
    );
  };

  const CopyButton = ({ text }) => {
    const [isCopied, tell] = React.useState(false);
    const copy = async () => {
      await navigator.clipboard.writeText(text);
      tell(true);
    };
    return e("button", { type: "button", className: "copy", onClick: copy }, isCopied ? "Copied" : "Copy");
  };

  return {
    components: {
      ReferenceLayout,
      curl: Snippets,
      OperationTag: ({ children }) => e("div", { className: "opblock-tag-section is-open" }, children),
      // The button stands in the page.
      authorizeBtn: ({ showPopup, getComponent }) => (showPopup ? e(getComponent("authorizationPopup", true)) : null),
      // An item of an array has its field by type and format, and a warning where there is none for that.
      JsonSchema_integer_int64: (properties) => e(getComponent("JsonSchema_string"), properties),
    },
    wrapComponents: {
      // A link within the button that opens an operation: neither could be reached alone.
      DeepLink: () => ({ text }) => e("span", null, text),
    },
    statePlugins: {
      spec: {
        wrapActions: {
          // The next call is another one.
          setResponse: (act, { specActions, specSelectors }) => (path, method, response) => {
            act(path, method, response);
            const parameters = specSelectors.specJsonWithResolvedSubtrees().getIn(["paths", path, method, "parameters"]);
            const key = parameters?.find((each) => each.get("name") === "Idempotency-Key" && each.get("required"));
            if (key) specActions.changeParamByIdentity([path, method], key, createKey(), false);
          },
        },
      },
      auth: {
        wrapSelectors: {
          // A key in an address is logged on its way; the one in the header does the same.
          definitionsToAuthorize: (select) => (...given) =>
            select(...given)
              ?.map((schemes) => schemes.delete("apiKeyInQuery"))
              .filter((schemes) => schemes.size),
        },
        wrapActions: {
          authorize: (act) => (given) => {
            if (given.apiKey) keepKey(given.apiKey.value);
            for (const name of Object.keys(given)) used.add(name);
            tellUsed();
            return act(given);
          },
          authorizeOauth2: (act) => (given) => {
            used.add(given.auth.name);
            tellUsed();
            return act(given);
          },
          logout: (act) => (names) => {
            if (names.includes("apiKey")) keepKey(null);
            for (const name of names) used.delete(name);
            tellUsed();
            return act(names);
          },
        },
      },
    },
  };
};

/** Attributes that the markup lacks, by the elements that lack them. */
const mended = [
  [".close-modal", () => ({ "aria-label": "Close" })],
  [".modal-ux", () => ({ role: "dialog", "aria-modal": "true", "aria-label": "Authorize" })],
  // It stands below the name of the scheme, which is an h4.
  [".auth-container .scopes h2", () => ({ "aria-level": "5" })],
  [".auth-container .scopes h2 a", () => ({ role: "button", tabindex: "0" })],
  // Its name was another than what one reads on it.
  [".auth-btn-wrapper .authorize", (button) => ({ "aria-label": `${button.textContent}: ${nameOfScheme(button)}` })],
  [".auth-container label + section > input", (field) => ({ "aria-label": `${labelOf(field)} ${nameOfScheme(field)}` })],
  ["pre.microlight, .highlight-code > pre", () => ({ tabindex: "0" })],
  [".examples-select select", () => ({ "aria-label": "Example" })],
  ["textarea.body-param__text", () => ({ "aria-label": "Request body" })],
  [".parameters-col_description :is(select, input, textarea)", (field) => ({ "aria-label": field.closest("[data-param-name]")?.dataset.paramName ?? "Value" })],
  [".responses-wrapper [role=region]", (region) => ({ "aria-label": `Responses of ${region.id}` })],
];

const nameOfScheme = (element) => {
  const scheme = element.closest(".auth-container");
  return (scheme.querySelector("h4 code") ?? scheme.querySelector("h4"))?.textContent.trim() ?? "";
};
const labelOf = (field) => field.parentElement.previousElementSibling.textContent;

let opened = null;

const mend = () => {
  for (const [selector, attributes] of mended) {
    for (const element of place.querySelectorAll(selector)) {
      for (const [name, value] of Object.entries(attributes(element))) {
        if (element.getAttribute(name) !== value) element.setAttribute(name, value);
      }
    }
  }
  const dialog = place.querySelector(".modal-ux");
  if (dialog && dialog !== opened) dialog.querySelector("input")?.focus();
  if (opened && !dialog) authorize.focus();
  opened = dialog;
};

const REFERENCE = "#/components/";

/** The document with these paths alone, and with what they refer to. */
const cut = (spec, paths) => {
  const { securitySchemes } = spec.components;
  const components = { securitySchemes };
  const visit = (value) => {
    if (value === null || typeof value !== "object") return;
    for (const one of Object.values(value)) {
      if (typeof one !== "string" || !one.startsWith(REFERENCE)) {
        visit(one);
        continue;
      }
      const [kind, name] = one.slice(REFERENCE.length).split("/");
      components[kind] ??= {};
      if (name in components[kind]) continue;
      components[kind][name] = spec.components[kind][name];
      visit(components[kind][name]);
    }
  };
  visit(paths);
  return { ...spec, paths, components };
};

/* The page behind the dialog is out of reach. */
document.addEventListener("focusin", ({ target }) => {
  const dialog = place.querySelector(".modal-ux");
  if (dialog && !dialog.contains(target)) dialog.querySelector("input, button").focus();
});

/** Loads a file of the page's own that the first view does not need. */
const append = (element, parent) =>
  new Promise((resolve, reject) => {
    element.addEventListener("load", resolve);
    element.addEventListener("error", () => reject(new Error("The viewer failed to load. Reload the page.")));
    parent(element);
  });

// A component of the document.
const REQUIRED_KEY = "Idempotency-Key-required";

const start = async () => {
  const [spec] = await Promise.all([
    document_,
    append(create("link", { rel: "stylesheet", href: viewer.dataset.style }), (link) => document.head.querySelector("link[rel=stylesheet]").before(link)),
    append(create("script", { src: viewer.dataset.script }), (script) => document.head.append(script)),
  ]);
  const ui = SwaggerUIBundle({
    spec: cut(spec, {}),
    domNode: place,
    presets: [SwaggerUIBundle.presets.apis],
    plugins: [ours],
    layout: "ReferenceLayout",
    // Only the key is kept, by key.js.
    persistAuthorization: false,
    // The badge would ask a host of the maker's.
    validatorUrl: null,
    oauth2RedirectUrl: new URL(viewer.dataset.redirect, location.href).href,
    requestInterceptor: (request) => {
      // A call is made with the credential that was given here, never with the session of this browser.
      request.credentials = "omit";
      return request;
    },
  });
  ui.initOAuth({ clientId: viewer.dataset.client, usePkceWithAuthorizationCodeGrant: true });
  if (readKey()) ui.preauthorizeApiKey("apiKey", readKey());
  new MutationObserver(mend).observe(place, { childList: true, subtree: true });
  return ui;
};

let starting = null;
const load = () => {
  starting ??= start();
  return starting;
};

const tell = (text) => {
  said.textContent = text;
};
const fail = (error) => {
  starting = null;
  tell(error.message);
};

// Swagger UI is dark by a class.
const dark = matchMedia("(prefers-color-scheme: dark)");
const followScheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", followScheme);
followScheme();

/* --- The index */

const METHODS = ["get", "post", "put", "patch", "delete"];

const listOperations = (spec) => {
  const operations = Object.entries(spec.paths).flatMap(([path, methods]) =>
    METHODS.filter((method) => methods[method]).map((method) => ({ path, method, ...methods[method] })),
  );
  return spec.tags.map((tag) => ({ ...tag, operations: operations.filter(({ tags }) => tags[0] === tag.name) }));
};

/* What the search looks through beside what is shown: descriptions, and the names of parameters. */
const getWords = ({ description = "", parameters = [] }) => `${description} ${parameters.map(({ name, $ref }) => name ?? $ref.split("/").pop()).join(" ")}`;

const buildEntry = (operation) => {
  const { path, method, summary, operationId, tags } = operation;
  const link = create(
    "a",
    { href: `#/${tags[0]}/${operationId}`, title: summary },
    create("span", { className: `method ${method}`, textContent: method.toUpperCase() }),
    " ",
    create("code", { textContent: path }),
    " ",
    create("span", { className: "summary", textContent: summary }),
  );
  const entry = create("li", {}, link);
  entry.dataset.words = getWords(operation);
  return entry;
};

const fillIndex = (spec) => {
  for (const { name, operations } of listOperations(spec)) {
    const list = create("ul", {}, ...operations.map(buildEntry));
    index.querySelector("nav").append(create("section", {}, create("h3", { textContent: name }), list));
  }
};

const filter = document.getElementById("filter");
const count = index.querySelector("[role=status]");
const applyFilter = () => {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const section of index.querySelectorAll("section")) {
    const tag = section.querySelector("h3").textContent;
    for (const entry of section.querySelectorAll("li")) {
      const text = `${tag} ${entry.textContent} ${entry.dataset.words}`.toLowerCase();
      entry.hidden = !words.every((word) => text.includes(word));
      found += !entry.hidden;
    }
    section.hidden = !section.querySelector("li:not([hidden])");
  }
  count.textContent = words.length ? `${found} ${found === 1 ? "endpoint" : "endpoints"}` : "";
};
filter.addEventListener("input", applyFilter);
filter.addEventListener("keydown", ({ key }) => {
  if (key === "Enter") index.querySelector("li:not([hidden]) a")?.click();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.closest("input, textarea, select")) {
    event.preventDefault();
    filter.focus();
  }
});

// On a phone the index is longer than the screen.
const isSmall = matchMedia("(max-width: 60rem)");
index.open = !isSmall.matches;

/* --- The chosen endpoint, which the address names */

const getPaths = (spec, id) =>
  Object.fromEntries(
    Object.entries(spec.paths).flatMap(([path, methods]) =>
      Object.entries(methods)
        .filter(([, { operationId }]) => operationId === id)
        .map(([method, operation]) => [path, { [method]: operation }]),
    ),
  );

/** Takes from an operation what Swagger UI would repeat for each of its answers: errors and headers. They are folded. */
const fold = (spec, paths) => {
  const [[path, methods]] = Object.entries(paths);
  const [[method, operation]] = Object.entries(methods);
  const resolve = (part) => (part.$ref ? part.$ref.slice(2).split("/").reduce((value, name) => value[name], spec) : part);
  // What a call needs comes before what it may have.
  const parameters = (operation.parameters ?? []).toSorted((one, other) => Boolean(resolve(other).required) - Boolean(resolve(one).required));
  const successes = {};
  const headers = new Map();
  const errors = [];
  for (const [status, reference] of Object.entries(operation.responses)) {
    const { headers: own = {}, ...response } = resolve(reference);
    for (const [name, header] of Object.entries(own)) if (!headers.has(name)) headers.set(name, resolve(header).description);
    if (status < "400") successes[status] = response;
    else errors.push(...listErrors(status, response, resolve));
  }
  return [
    { [path]: { [method]: { ...operation, parameters, responses: successes } } },
    buildFolded(`Errors (${errors.length})`, errors),
    buildFolded(`Response headers (${headers.size})`, [...headers].sort(([one], [other]) => one.localeCompare(other)).map(([name, text]) => [create("code", { textContent: name }), text])),
  ];
};

const listErrors = (status, { description, content = {} }, resolve) => {
  const examples = Object.entries(content["application/json"]?.examples ?? {});
  if (!examples.length) return [[`${status} `, description]];
  return examples.map(([code, example]) => [
    create("span", {}, `${status} `, create("a", { href: `/docs/errors#${code}`, textContent: code })),
    resolve(example).summary,
  ]);
};

const buildFolded = (title, rows) =>
  create(
    "details",
    {},
    create("summary", { textContent: title }),
    create("dl", {}, ...rows.map(([term, text]) => create("div", {}, create("dt", {}, term), create("dd", { textContent: text })))),
  );

const show = async (block = "nearest") => {
  const [, tag, id] = location.hash.split("/");
  let link = null;
  for (const one of index.querySelectorAll("nav a")) {
    if (one.hash === location.hash) (link = one).setAttribute("aria-current", "true");
    else one.removeAttribute("aria-current");
  }
  chosen.hidden = !link;
  start_.hidden = Boolean(link);
  if (!link) return;
  chosen.querySelector("h3").textContent = link.title;
  if (isSmall.matches) index.open = false;
  link.scrollIntoView({ block });
  tell("Loading …");
  const ui = await load();
  if (location.hash !== link.hash) return;
  const refreshKey = (name, value) => (name === REQUIRED_KEY ? { ...value, example: createKey() } : value);
  const spec = await document_;
  const [paths, errors, headers] = fold(spec, getPaths(spec, id));
  ui.specActions.updateSpec(JSON.stringify(cut(spec, paths), refreshKey));
  folded.replaceChildren(errors, headers);
  ui.layoutActions.show(["operations", tag, id], true);
  tell("");
  chosen.querySelector("h3").focus();
  chosen.scrollIntoView();
};

const authorize = viewer.querySelector(".authorize");
authorize.addEventListener("click", async () => {
  const ui = await load().catch(fail);
  ui?.authActions.showDefinitions(ui.authSelectors.definitionsToAuthorize());
});
document.addEventListener("keydown", async ({ key, target }) => {
  if (key === "Enter" && target.matches(".scopes h2 a")) target.click();
  if (key === "Escape" && place.querySelector(".modal-ux")) (await load()).authActions.showDefinitions(false);
});

const document_ = fetch(viewer.dataset.schema).then((answer) => {
  if (!answer.ok) throw new Error("The OpenAPI document failed to load. Reload the page.");
  return answer.json();
});
document_
  .then((spec) => {
    fillIndex(spec);
    // Of who began to type before the index was there.
    applyFilter();
    addEventListener("hashchange", () => show().catch(fail));
    return show("center");
  })
  .catch(fail);
