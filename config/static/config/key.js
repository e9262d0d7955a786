"use strict";

/** The reader's API key: given once, on any page, and forgotten with the tab. */

const API_KEY = "api-key";

const readKey = () => sessionStorage.getItem(API_KEY);

const keepKey = (key) => {
  if (key) sessionStorage.setItem(API_KEY, key);
  else sessionStorage.removeItem(API_KEY);
};

/** A new Idempotency-Key: a form that is sent again with the last one would repeat the last answer. */
const createKey = () => {
  if (crypto.randomUUID) return crypto.randomUUID();
  // Browsers have randomUUID only over https and on localhost.
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
};
