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
        title="Copy the code"
        onClick={() => void copyText(code)}
      >
        <span className="visually-hidden">Copy the code</span>
      </Button>
    </div>
  );
}
