import { Children, type ComponentProps, isValidElement, type ReactNode } from "react";
import ReactMarkdown, { type Components, defaultUrlTransform, type Options } from "react-markdown";
import remarkBreaks from "remark-breaks";
import remarkGfm from "remark-gfm";
import { CodeBlock } from "@/ui/CodeBlock";
import { Diagram } from "@/ui/Diagram";
import styles from "@/ui/Markdown.module.css";
import { withMathMarks } from "@/ui/mathMarks";
import { useModule } from "@/ui/useModule";

type Element = "h3" | "h4" | "h5" | "h6" | "p" | "li" | "blockquote" | "th";

/* Each block is read in its own direction. Headings start at the third level: the page has its own. */
function block(Tag: Element) {
  return ({ node: _, ...props }: ComponentProps<Element> & { node?: unknown }) => {
    const Each = Tag as "p";
    return <Each {...(props as ComponentProps<"p">)} dir="auto" />;
  };
}

const COMPONENTS: Components = {
  h1: block("h3"),
  h2: block("h4"),
  h3: block("h5"),
  h4: block("h6"),
  h5: block("h6"),
  h6: block("h6"),
  p: block("p"),
  li: block("li"),
  blockquote: block("blockquote"),
  td: ({ node: _, ...props }) => (
    <td {...props} dir="auto" className={isFigure(textOf(props.children)) ? styles.figure : ""} />
  ),
  th: block("th"),
  img: ({ alt, src }) => <Picture alt={alt ?? ""} src={typeof src === "string" ? src : ""} />,
  a: ({ href, children }) => (
    <a href={href} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  ),
  pre: ({ children }) => {
    const { language, code } = fenceOf(children);
    if (language === "mermaid") return <Diagram code={code} />;
    return <CodeBlock code={code}>{children}</CodeBlock>;
  },
  table: ({ children }) => (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboards must be able to scroll it
    <section className={styles.scroll} aria-label="Table" tabIndex={0}>
      <table>{children}</table>
    </section>
  ),
};

/** A picture that is in the text itself; one from elsewhere would reveal the reader's address to its host. */
function Picture({ alt, src }: { alt: string; src: string }) {
  if (DATA_PICTURE.test(src)) return <img className={styles.picture} src={src} alt={alt} />;
  if (!src) return <span>Picture: {alt}</span>;
  return (
    <a href={src} target="_blank" rel="noopener noreferrer">
      Picture: {alt || src}
    </a>
  );
}

const DATA_PICTURE = /^data:image\/(png|jpeg|gif|webp|avif|svg\+xml)[;,]/i;

const urlOf: Options["urlTransform"] = (url, key) =>
  key === "src" && DATA_PICTURE.test(url) ? url : defaultUrlTransform(url);

/** Returns the language and the text of a fence. */
function fenceOf(children: ReactNode): { language: string; code: string } {
  const [element] = Children.toArray(children);
  if (!isValidElement<{ className?: string; children?: ReactNode }>(element)) {
    return { language: "", code: "" };
  }
  const { className = "", children: text } = element.props;
  return {
    language: /language-([\w+#-]+)/.exec(className)?.[1] ?? "",
    code: textOf(text).replace(/\n$/, ""),
  };
}

/** Returns the text of what is drawn: code that is highlighted is made of elements. */
function textOf(node: ReactNode): string {
  return Children.toArray(node)
    .map((each) =>
      isValidElement<{ children?: ReactNode }>(each) ? textOf(each.props.children) : String(each),
    )
    .join("");
}

/** Whether a cell is a date, a time, or a number with its unit: a line break would take it apart. */
function isFigure(cell: string): boolean {
  return /\d/.test(cell) && cell.length <= LONGEST_FIGURE;
}

const LONGEST_FIGURE = 14;

const HAS_MATH = /\$\$/;
const HAS_LANGUAGE = /^\s*(`{3,}|~{3,})\s*[\w+#-]/m;

/** The rendered Markdown; loaded when the first text is shown. */
export function MarkdownBody({ text }: { text: string }) {
  const marked = withMathMarks(text);
  const math = useModule(HAS_MATH.test(marked), () => import("@/ui/markdownMath"));
  const code = useModule(HAS_LANGUAGE.test(text), () => import("@/ui/markdownCode"));
  return (
    <ReactMarkdown
      // A line of a model or a person stays a line, also one that it did not set apart from a list.
      remarkPlugins={[remarkGfm, remarkBreaks, ...(math?.MARKS ?? [])]}
      rehypePlugins={[...(math?.DRAWN ?? []), ...(code?.DRAWN ?? [])]}
      components={COMPONENTS}
      urlTransform={urlOf}
      skipHtml
    >
      {math ? marked : text}
    </ReactMarkdown>
  );
}
