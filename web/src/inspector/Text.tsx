import { useMemo, useState } from "react";
import { readJson, writeJson } from "@/json";
import { Button } from "@/ui/Button";
import { formatBytes } from "@/ui/format";
import { Markdown } from "@/ui/Markdown";
import styles from "./Text.module.css";

/** Characters that are drawn before the reader asks for more. */
const LONGEST = 64_000;

/** Characters that are drawn as Markdown; what is longer is drawn as it is. */
const LARGEST = 512_000;

/** A text of any length: Markdown or JSON, cut where it would slow the page down. */
export function Text({ text: given }: { text: string }) {
  const [isWhole, setWhole] = useState(false);
  const json = useMemo(() => indented(given), [given]);
  const text = json ?? given;
  const isCut = !isWhole && text.length > LONGEST;
  const shown = isCut ? text.slice(0, LONGEST) : text;
  return (
    <div className={styles.text}>
      {isWhole && text.length > LARGEST ? (
        <pre className={styles.code}>{shown}</pre>
      ) : (
        <Markdown text={json === null ? shown : fenced(shown)} />
      )}
      {isCut && (
        <p className={styles.more}>
          {formatBytes(LONGEST)} of {formatBytes(text.length)} are shown.{" "}
          <Button small onClick={() => setWhole(true)}>
            Show everything
          </Button>
        </p>
      )}
    </div>
  );
}

/** Returns JSON as a block of code; no line of JSON begins with a fence. */
function fenced(json: string): string {
  return `\`\`\`json\n${json}\n\`\`\``;
}

/** Returns JSON with a line for each value, its numbers as they came; null for any other text. */
function indented(text: string): string | null {
  const start = text.trimStart().charAt(0);
  if (start !== "{" && start !== "[") return null;
  try {
    return writeJson(readJson(text), 2);
  } catch {
    return null;
  }
}
