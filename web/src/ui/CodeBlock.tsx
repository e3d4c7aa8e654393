import type { ReactNode } from "react";
import { Button } from "@/ui/Button";
import { copyText } from "@/ui/copyText";
import styles from "@/ui/Markdown.module.css";

/** Code that can be copied; `children` is how it is drawn. */
export function CodeBlock({ code, children }: { code: string; children: ReactNode }) {
  return (
    <div className={styles.code}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: keyboards must be able to scroll it */}
      <pre tabIndex={0} dir="ltr">
        {children}
      </pre>
      <Button
        small
        kind="quiet"
        icon="copy"
        aria-label="Copy the code"
        onClick={() => void copyText(code)}
      >
        Copy
      </Button>
    </div>
  );
}
