// What the page uses of xterm.js and its addon, which have no types here.
export type Terminal = {
  readonly rows: number;
  readonly cols: number;
  readonly options: { disableStdin?: boolean; cursorBlink?: boolean; theme?: Record<string, string> };
  attachCustomKeyEventHandler(handle: (event: KeyboardEvent) => boolean): void;
  dispose(): void;
  focus(): void;
  loadAddon(addon: FitAddon): void;
  onBinary(take: (text: string) => void): void;
  onData(take: (text: string) => void): void;
  onResize(take: () => void): void;
  open(box: HTMLElement): void;
  write(content: Uint8Array, onDone: () => void): void;
};
export type FitAddon = { fit(): void };
export type TerminalModule = { Terminal: new (options: object) => Terminal };
export type FitModule = { FitAddon: new () => FitAddon };
