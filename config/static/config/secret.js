"use strict";

/** The button that copies a secret which is shown only once. */
const prepareSecrets = () => {
  for (const button of document.querySelectorAll(".secret button[hidden]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.previousElementSibling.textContent);
      button.textContent = "Copied";
    });
  }
};
prepareSecrets();
