import ReactMarkdown, { type Components } from "react-markdown";
import remarkBreaks from "remark-breaks";
import remarkGfm from "remark-gfm";
import styles from "@/ui/Markdown.module.css";

/* Headings start at the third level: the page has its own. A picture would reveal the reader's address to its host. */
const COMPONENTS: Components = {
  h1: ({ children }) => <h3>{children}</h3>,
  h2: ({ children }) => <h3>{children}</h3>,
  h3: ({ children }) => <h4>{children}</h4>,
  h4: ({ children }) => <h4>{children}</h4>,
  h5: ({ children }) => <h4>{children}</h4>,
  h6: ({ children }) => <h4>{children}</h4>,
  img: ({ alt, src }) =>
    typeof src === "string" ? (
      <a href={src} target="_blank" rel="noopener noreferrer">
        Picture: {alt || src}
      </a>
    ) : (
      <span>Picture: {alt}</span>
    ),
  a: ({ href, children }) => (
    <a href={href} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  ),
  pre: ({ children }) => (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboards must be able to scroll it
    <pre tabIndex={0}>{children}</pre>
  ),
  table: ({ children }) => (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboards must be able to scroll it
    <section className={styles.scroll} aria-label="Table" tabIndex={0}>
      <table>{children}</table>
    </section>
  ),
};

/* A line of a model or a person stays a line, also one that it did not set apart from a list. */
const PLUGINS = [remarkGfm, remarkBreaks];

/** The rendered Markdown; loaded when the first text is shown. */
export function MarkdownBody({ text }: { text: string }) {
  return (
    <ReactMarkdown remarkPlugins={PLUGINS} components={COMPONENTS} skipHtml>
      {text}
    </ReactMarkdown>
  );
}
