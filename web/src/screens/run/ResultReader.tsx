import { type RefObject, useEffect, useRef, useState } from "react";
import { Text } from "@/inspector/Text";
import { Button } from "@/ui/Button";
import { copyText } from "@/ui/copyText";
import { Menu } from "@/ui/Menu";
import { usePreferences } from "@/ui/preferences";
import { nameOfFile, saveFile } from "@/ui/saveFile";
import { useBreakpoint } from "@/ui/useMedia";
import styles from "./ResultReader.module.css";
import { htmlPage } from "./resultFile";

/** What one of the last steps delivered. */
export type ResultPart = { id: string; name: string; text: string };

type ResultReaderProps = {
  title: string;
  parts: readonly ResultPart[];
  /** The names of the steps whose results are not there because the run failed. */
  missing?: readonly string[];
  /** Leads back to where the reader was opened; null where it is all there is. */
  onClose: (() => void) | null;
  onShare?: () => void;
};

/** The result of a run to be read: as wide as it needs, with its contents, and as a file. */
export function ResultReader(props: ResultReaderProps) {
  const { title, parts, missing = [], onClose, onShare } = props;
  const article = useRef<HTMLElement>(null);
  const headings = useHeadings(article);
  return (
    <div className={styles.reader}>
      <div className={styles.bar}>
        {onClose && (
          <Button icon="left" onClick={onClose}>
            Back to the run
          </Button>
        )}
        <ResultActions title={title} parts={parts} article={article} />
        {onShare && (
          <Button icon="link" onClick={onShare}>
            Share
          </Button>
        )}
      </div>
      <div className={styles.columns}>
        {headings.length > 2 && <Contents headings={headings} />}
        <article ref={article} className={styles.article} aria-label="Result">
          {parts.map(({ id, name, text }) => (
            <section key={id} aria-label={name}>
              {parts.length > 1 && <h2 dir="auto">{name}</h2>}
              <Text text={text} />
            </section>
          ))}
          {missing.length > 0 && (
            <p>
              <em>Missing: {missing.join(", ")}.</em>
            </p>
          )}
        </article>
      </div>
    </div>
  );
}

type ResultActionsProps = Pick<ResultReaderProps, "title" | "parts"> & {
  article: RefObject<HTMLElement | null>;
};

function ResultActions({ title, parts, article }: ResultActionsProps) {
  const words = parts.map(({ text }) => text).join("\n\n");
  const name = nameOfFile(title);
  const asHtml = () => {
    if (article.current) saveFile(htmlPage(title, article.current), `${name}.html`, "text/html");
  };
  return (
    <>
      <Button icon="copy" onClick={() => void copyText(words)}>
        Copy
      </Button>
      <Menu
        trigger={<Button icon="download">Download</Button>}
        items={[
          { label: "Markdown", onSelect: () => saveFile(words, `${name}.md`, "text/markdown") },
          { label: "HTML", onSelect: asHtml },
          { label: "Print or PDF", onSelect: printInLightTheme },
        ]}
      />
    </>
  );
}

/** Prints in dark ink on paper, whatever the theme of the page is. */
function printInLightTheme(): void {
  const { theme, setTheme } = usePreferences.getState();
  setTheme("light");
  // The menu closes and diagrams are drawn anew first.
  setTimeout(() => {
    window.print();
    setTheme(theme);
  }, 300);
}

type Heading = { text: string; level: number; element: HTMLElement };

function Contents({ headings }: { headings: readonly Heading[] }) {
  const isNarrow = useBreakpoint("narrow");
  const top = Math.min(...headings.map(({ level }) => level));
  const list = (
    <ol>
      {headings.map(({ text, level, element }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: headings may have the same words
        <li key={index} data-depth={level - top}>
          <button type="button" onClick={() => goTo(element)}>
            <span dir="auto">{text}</span>
          </button>
        </li>
      ))}
    </ol>
  );
  return (
    <nav className={styles.contents} aria-label="Contents">
      {/* Above the text, where there is no room beside it, a long list would push it away. */}
      {isNarrow ? (
        <details>
          <summary>Contents</summary>
          {list}
        </details>
      ) : (
        <>
          <h2>Contents</h2>
          {list}
        </>
      )}
    </nav>
  );
}

function goTo(heading: HTMLElement): void {
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  heading.scrollIntoView({ block: "start" });
}

const CHAPTERS = "h2, h3, h4";

/** The headings of what is drawn, which comes bit by bit. */
function useHeadings(article: RefObject<HTMLElement | null>): readonly Heading[] {
  const [headings, setHeadings] = useState<readonly Heading[]>([]);
  useEffect(() => {
    const root = article.current;
    if (root === null) return;
    const read = () =>
      setHeadings(
        [...root.querySelectorAll<HTMLElement>(CHAPTERS)].map((element) => ({
          text: element.textContent ?? "",
          level: Number(element.tagName.slice(1)),
          element,
        })),
      );
    read();
    const observer = new MutationObserver(read);
    observer.observe(root, { childList: true, subtree: true, characterData: true });
    return () => observer.disconnect();
  }, [article]);
  return headings;
}
