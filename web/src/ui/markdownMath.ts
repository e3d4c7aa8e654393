import type { Options } from "react-markdown";
import rehypeKatex from "rehype-katex";
import remarkMath from "remark-math";

/** Finds mathematics between `$$`; between single ones are prices as often, see `withMathMarks`. */
export const MARKS: Options["remarkPlugins"] = [[remarkMath, { singleDollarTextMath: false }]];

/** Draws it as MathML, which needs neither fonts nor styles of its own. */
export const DRAWN: Options["rehypePlugins"] = [
  [rehypeKatex, { output: "mathml", throwOnError: false }],
];
