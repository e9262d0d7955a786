"use strict";

/** A request as a program in each language of the guide: what is shown can be run as it is. */

const quoteForShell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/* A text of several lines stays one to be read, unless something in it would be taken for more than itself. */
const quoteText = (text, mark, special) => (text.includes("\n") && !special.test(text) ? `${mark}${text}${mark}` : JSON.stringify(text));

const snippets = {
  curl: ({ method, url, headers, body }) => {
    const parts = [`curl${method === "GET" ? "" : ` -X ${method}`} ${quoteForShell(url)}`];
    for (const [name, value] of headers) parts.push(`-H ${quoteForShell(`${name}: ${value}`)}`);
    if (body) parts.push(`--data-raw ${quoteForShell(body)}`);
    return parts.join(" \\\n  ");
  },
  python: ({ method, url, headers, body }) => {
    const lines = headers.map(([name, value]) => `        ${JSON.stringify(name)}: ${JSON.stringify(value)},\n`);
    const content = body ? `    content=${quoteText(body, '"""', /"""|"$|\\/)},\n` : "";
    return (
      "import httpx\n\n" +
      `answer = httpx.request(\n    "${method}",\n    ${JSON.stringify(url)},\n    headers={\n${lines.join("")}    },\n${content})\n` +
      "print(answer.status_code, answer.text)"
    );
  },
  javascript: ({ method, url, headers, body }) => {
    const lines = headers.map(([name, value]) => `    ${JSON.stringify(name)}: ${JSON.stringify(value)},\n`);
    const content = body ? `  body: ${quoteText(body, "`", /[`\\]|\$\{/)},\n` : "";
    return (
      `const answer = await fetch(${JSON.stringify(url)}, {\n  method: "${method}",\n  headers: {\n${lines.join("")}  },\n${content}})\n` +
      "console.log(answer.status, await answer.text())"
    );
  },
};
