"use strict";

/** The reader's API key: given once, on any page, and forgotten with the tab. */

const API_KEY = "api-key";

const readKey = () => sessionStorage.getItem(API_KEY);

const keepKey = (key) => {
  if (key) sessionStorage.setItem(API_KEY, key);
  else sessionStorage.removeItem(API_KEY);
};
