// Reads command lines by tools/cli/commands.cjs, and prints the help of it: without packages.
"use strict";

const { parseArgs } = require("node:util");

const commands = require("./commands.cjs");

const width = 100;

/** How npm runs it: `npm start`, `npm run test:faults`. */
const asTyped = (name) =>
  `npm ${/^(start|stop|test)$/.test(name) ? "" : "run "}${name.replace(/^test-/, "test:")}`;

/** The lines of a text, each from a column on. */
function wrapped(text, column) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== "" && column + last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = last === "" ? word : `${last} ${word}`;
  }
  return lines.join(`\n${" ".repeat(column)}`);
}

function table(rows) {
  const column = Math.max(...rows.map(([name]) => name.length)) + 4;
  return rows.map(([name, about]) => `  ${name.padEnd(column - 2)}${wrapped(about, column)}`);
}

const choicesOf = ({ choices }) => (choices ? ` (${choices.join(", ")})` : "");

function optionRow([name, option]) {
  const usual = option.default ?? option.usually;
  const about = [
    option.about,
    choicesOf(option),
    option.required ? " (required)" : "",
    usual === undefined ? "" : ` (default: ${usual})`,
  ];
  return [`--${name}${option.value ? ` <${option.value}>` : ""}`, about.join("")];
}

const helpRow = ["-h, --help", "print this, and do nothing"];

function helpOf(name) {
  const { about, args, options = {}, after = [] } = commands[name];
  const usage = [asTyped(name), "--", "[options]", ...(args ? [`[${args.name}...]`] : [])];
  return [
    `Usage: ${usage.join(" ")}`,
    "",
    wrapped(about, 0),
    ...(args
      ? ["", "Arguments:", ...table([[`${args.name}...`, args.about + choicesOf(args)]])]
      : []),
    "",
    "Options:",
    ...table([...Object.entries(options).map(optionRow), helpRow]),
    ...(after.length > 0
      ? ["", ...after.map((line) => (line.startsWith(" ") ? line : wrapped(line, 0)))]
      : []),
    "",
  ].join("\n");
}

/** The first part of the first sentence. */
const inShort = (about) => about.split(/[:.;](?= |$)/)[0];

const overview = () =>
  [
    "Commands:",
    ...table(Object.entries(commands).map(([name, { about }]) => [asTyped(name), inShort(about)])),
    "",
    "Each has --help: npm start -- --help",
    "",
  ].join("\n");

const camelCase = (name) => name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());

const isFlag = ({ value }) => value === undefined;

/**
 * What was typed behind a command's name: its options by their names in camel case, and the
 * arguments. `problems` has a sentence for each word that is wrong.
 */
function readWords(name, words) {
  const { options: known = {}, args, passesOn } = commands[name];
  if (passesOn) return { options: {}, args: words, problems: [] };
  const flags = Object.entries(known).filter(([, option]) => isFlag(option));
  const options = Object.fromEntries(flags.map(([each]) => [camelCase(each), false]));
  for (const [each, option] of Object.entries(known)) {
    if (option.default !== undefined) options[camelCase(each)] = option.default;
  }
  const problems = [];
  const given = [];
  const types = Object.entries(known).map(([each, option]) => [
    each,
    { type: isFlag(option) ? "boolean" : "string" },
  ]);
  const { tokens } = parseArgs({
    args: words,
    options: Object.fromEntries(types),
    strict: false,
    tokens: true,
  });
  for (const token of tokens) {
    if (token.kind === "positional") given.push(token.value);
    if (token.kind !== "option") continue;
    const option = Object.hasOwn(known, token.name) ? known[token.name] : undefined;
    if (option === undefined) {
      const names = Object.keys(known).map((each) => `--${each}`);
      const expected = names.length > 0 ? `expected ${names.join(", ")}` : "expected none";
      problems.push(`unknown option '${token.rawName}': ${expected}`);
    } else if (isFlag(option)) {
      if (token.value === undefined) options[camelCase(token.name)] = true;
      else problems.push(`--${token.name} takes no value, got '${token.value}'`);
    } else {
      read(token, option, options, problems);
    }
  }
  for (const [each, option] of Object.entries(known)) {
    const isThere = tokens.some((token) => token.kind === "option" && token.name === each);
    if (option.required && !isThere) {
      problems.push(`--${each} <${option.value}> is missing: ${option.about}`);
    }
  }
  const wrong = given.filter((each) => !args || (args.choices && !args.choices.includes(each)));
  if (wrong.length > 0) {
    const expected = args ? `one of ${args.choices.join(", ")}` : "options only";
    problems.push(`expected ${expected}, got '${wrong.join("', '")}'`);
  }
  return { options, args: given, problems };
}

function read({ name, value, inlineValue }, option, options, problems) {
  if (!value || (!inlineValue && value.startsWith("-"))) {
    const got = value ? `'${value}'; --${name}=${value} if it is one` : "nothing";
    problems.push(`--${name}: expected its <${option.value}>, got ${got}`);
    return;
  }
  try {
    if (option.choices && !option.choices.includes(value)) {
      throw new Error(`one of ${option.choices.join(", ")}`);
    }
    options[camelCase(name)] = option.read ? option.read(value) : value;
  } catch (error) {
    problems.push(`--${name}: expected ${error.message}, got '${value}'`);
  }
}

/** Words behind `--` belong to arguments, also where they look like this option. */
function asksForHelp(words) {
  const end = words.indexOf("--");
  return words
    .slice(0, end < 0 ? undefined : end)
    .some((word) => word === "--help" || word === "-h");
}

/**
 * What a command line comes to before anything is done: a text to print and an exit code, or null
 * where the command is to run.
 */
function answer([name, ...words]) {
  if (name === undefined || name === "--help" || name === "-h") {
    return { text: overview(), exitCode: 0 };
  }
  if (!Object.hasOwn(commands, name)) {
    return { text: `zoned: there is no command ${name}\n\n${overview()}`, exitCode: 2 };
  }
  if (asksForHelp(words)) return { text: helpOf(name), exitCode: 0 };
  const { problems } = readWords(name, words);
  if (problems.length === 0) return null;
  const lines = problems.map((problem) => `zoned: ${problem}\n`);
  return { text: `${lines.join("")}See ${asTyped(name)} -- --help\n`, exitCode: 2 };
}

module.exports = { answer, readWords };
