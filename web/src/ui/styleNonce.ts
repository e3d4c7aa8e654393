declare global {
  /** Read by the libraries that add style elements: radix-ui while a dialog is open. */
  var __webpack_nonce__: string | undefined;
}

/**
 * What a style element needs to be applied: the page's policy allows no others.
 * CodeMirror takes it as `EditorView.cspNonce.of(styleNonce)`.
 */
export const styleNonce: string =
  document.querySelector<HTMLMetaElement>('meta[name="style-nonce"]')?.content ?? "";

globalThis.__webpack_nonce__ = styleNonce;
