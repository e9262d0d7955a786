"use strict";

/** Swagger UI within our page, put right where its own markup keeps people out who use a keyboard or a screen reader. */

const ours = ({ React, getComponent }) => {
  const e = React.createElement;

  // Its own layout has a <main> and an <h1>, which stand beside those of the page.
  const ReferenceLayout = ({ getComponent, specSelectors }) => {
    const part = (name, properties) => e(getComponent(name, true), properties);
    const status = specSelectors.loadingStatus();
    if (status === "failed" || status === "failedConfig") {
      return e("p", { className: "wrapper", role: "alert" }, "The description of the endpoints could not be read. Load the page again.");
    }
    if (status !== "success") {
      return e("p", { className: "wrapper", role: "status" }, "Reading the description of the endpoints …");
    }
    return e(
      "div",
      { className: "swagger-ui" },
      part("SvgAssets"),
      e("div", { className: "wrapper" }, part("Markdown", { source: specSelectors.info().get("description") || "" })),
      e("div", { className: "wrapper head" }, e("h2", null, "Endpoints"), part("AuthorizeBtnContainer")),
      // Without the list of schemas: each is shown where it is sent or answered.
      e("div", { className: "wrapper" }, part("operations")),
    );
  };

  return {
    components: {
      ReferenceLayout,
      // An item of an array has its field by type and format, and a warning where there is none for that.
      JsonSchema_integer_int64: (properties) => e(getComponent("JsonSchema_string"), properties),
    },
    wrapComponents: {
      // A link within the button that opens an operation: neither could be reached alone.
      DeepLink: () => ({ text }) => e("span", null, text),
    },
    statePlugins: {
      auth: {
        wrapSelectors: {
          // A key in an address is logged on its way; the one in the header does the same.
          definitionsToAuthorize: (select) => (...given) =>
            select(...given)
              ?.map((schemes) => schemes.delete("apiKeyInQuery"))
              .filter((schemes) => schemes.size),
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
  opened = dialog;
};

const place = document.getElementById("swagger-ui");

const ui = SwaggerUIBundle({
  url: place.dataset.schema,
  domNode: place,
  presets: [SwaggerUIBundle.presets.apis],
  plugins: [ours],
  layout: "ReferenceLayout",
  deepLinking: true,
  docExpansion: "list",
  // A credential must not outlive the page.
  persistAuthorization: false,
  // The badge would ask a host of the maker's.
  validatorUrl: null,
  oauth2RedirectUrl: new URL(place.dataset.redirect, location.href).href,
  requestInterceptor: (request) => {
    // A call is made with the credential that was given here, never with the session of this browser.
    request.credentials = "omit";
    return request;
  },
});

ui.initOAuth({ clientId: place.dataset.client, usePkceWithAuthorizationCodeGrant: true });

// Swagger UI is dark by a class.
const dark = matchMedia("(prefers-color-scheme: dark)");
const followScheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", followScheme);
followScheme();

new MutationObserver(mend).observe(place, { childList: true, subtree: true });
document.addEventListener("keydown", ({ key }) => {
  if (key === "Escape" && place.querySelector(".modal-ux")) ui.authActions.showDefinitions(false);
});
