export { de } from "./words.de";
export { en } from "./words.en";
