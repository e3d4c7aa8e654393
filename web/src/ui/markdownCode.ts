import type { Options } from "react-markdown";
import rehypeHighlight from "rehype-highlight";

/** Sets the parts of code apart, where its language is named. */
export const DRAWN: Options["rehypePlugins"] = [[rehypeHighlight, { plainText: ["mermaid"] }]];
