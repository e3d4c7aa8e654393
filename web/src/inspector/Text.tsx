import { useState } from "react";
import { readJson } from "@/json";
import { Button } from "@/ui/Button";
import { formatBytes } from "@/ui/format";
import { Markdown } from "@/ui/Markdown";
import styles from "./Text.module.css";

/** Characters that are drawn before the reader asks for more. */
const LONGEST = 64_000;

/** A text of any length: Markdown or JSON, cut where it would slow the page down. */
export function Text({ text }: { text: string }) {
  const [isWhole, setWhole] = useState(false);
  const isCut = !isWhole && text.length > LONGEST;
  const shown = isCut ? text.slice(0, LONGEST) : text;
  return (
    <div className={styles.text}>
      {isJson(text) || isWhole ? (
        <pre className={styles.code}>{shown}</pre>
      ) : (
        <Markdown text={shown} />
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

function isJson(text: string): boolean {
  const start = text.trimStart().charAt(0);
  if (start !== "{" && start !== "[") return false;
  try {
    readJson(text);
    return true;
  } catch {
    return false;
  }
}
