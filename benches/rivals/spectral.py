"""The Fourier layer of U-FNO and U-NO, F-FNO, the multiwavelet operator MWT, and DeepONet."""

import math

import torch
import torch.nn.functional as functional
from torch import nn

from .library import GridModel, complex_weights, mix_modes


class Spectral2d(nn.Module):
    """The lowest modes of the two-dimensional spectrum, mixed over channels; all others are dropped."""

    def __init__(self, inputs, outputs, rows, columns):
        super().__init__()
        self.outputs, self.rows, self.columns = outputs, rows, columns
        self.weights1 = complex_weights(inputs, outputs, rows, columns)
        self.weights2 = complex_weights(inputs, outputs, rows, columns)

    def forward(self, image):
        batch, rows, columns = image.shape[0], self.rows, self.columns
        spectrum = torch.fft.rfft2(image)
        kept = torch.zeros(batch, self.outputs, image.shape[-2], image.shape[-1] // 2 + 1,
                           dtype=torch.cfloat, device=image.device)
        kept[:, :, :rows, :columns] = mix_modes(spectrum[:, :, :rows, :columns], self.weights1)
        kept[:, :, -rows:, :columns] = mix_modes(spectrum[:, :, -rows:, :columns], self.weights2)
        return torch.fft.irfft2(kept, s=image.shape[-2:])


class FactorisedSpectral(nn.Module):
    """One Fourier layer along each axis, added. The weights are real pairs (C, C, modes, 2)."""

    def __init__(self, width, modes):
        super().__init__()
        self.modes = modes
        self.fourier_weight = nn.ParameterList(nn.Parameter(torch.empty(width, width, modes, 2)) for _ in range(2))
        for weight in self.fourier_weight:
            nn.init.xavier_normal_(weight)

    def forward(self, image):
        batch, channels, rows, columns = image.shape
        along_rows, along_columns = (torch.view_as_complex(weight) for weight in self.fourier_weight)

        spectrum = torch.fft.rfft(image, dim=-1, norm="ortho")
        kept = spectrum.new_zeros(batch, channels, rows, columns // 2 + 1)
        kept[..., :self.modes] = torch.einsum("bixy,ioy->boxy", spectrum[..., :self.modes], along_columns)
        y = torch.fft.irfft(kept, n=columns, dim=-1, norm="ortho")

        spectrum = torch.fft.rfft(image, dim=-2, norm="ortho")
        kept = spectrum.new_zeros(batch, channels, rows // 2 + 1, columns)
        kept[:, :, :self.modes] = torch.einsum("bixy,iox->boxy", spectrum[:, :, :self.modes], along_rows)
        x = torch.fft.irfft(kept, n=rows, dim=-2, norm="ortho")
        return x + y


class FFno(GridModel):
    def __init__(self, settings):
        super().__init__(settings, head=settings.n_hidden)
        layers = (FactorisedSpectral(settings.n_hidden, settings.modes) for _ in range(settings.n_layers))
        self.spectral_layers = nn.ModuleList(layers)

    def body(self, image):
        for layer in self.spectral_layers:
            image = image + layer(image)
        return image


def legendre(order, x):
    """phi_i(x) = sqrt(2 i + 1) P_i(2 x - 1), i < order: [order, len(x)]"""
    x = 2 * x - 1
    values = [torch.ones_like(x), x]
    for i in range(1, order - 1):
        values.append(((2 * i + 1) * x * values[i] - i * values[i - 1]) / (i + 1))
    return torch.stack([math.sqrt(2 * i + 1) * value for i, value in enumerate(values[:order])])


def multiwavelet_filters(order):
    """H0, H1, G0, G1 [order, order] of the Legendre basis, by Gauss quadrature on both halves of [0, 1]."""
    nodes = order + 1
    off_diagonal = torch.tensor([i / math.sqrt(4 * i * i - 1) for i in range(1, nodes)], dtype=torch.float64)
    roots, vectors = torch.linalg.eigh(torch.diag(off_diagonal, 1) + torch.diag(off_diagonal, -1))
    unit, quarter = (roots + 1) / 2, vectors[0] ** 2 / 2  # nodes on [0, 1]; weights of a half interval
    weights = torch.cat([quarter, quarter])
    fine = legendre(order, unit)  # the basis of a half, at the nodes of that half
    phi = legendre(order, torch.cat([unit / 2, (unit + 1) / 2]))
    psi = []
    for i in range(order):
        half = torch.cat([math.sqrt(2) * fine[i], torch.zeros(nodes, dtype=torch.float64)])
        wavelet = half.clone()
        for other in [*phi, *psi]:
            wavelet -= (weights * half * other).sum() * other
        psi.append(wavelet / (weights * wavelet * wavelet).sum().sqrt())
    filters = []
    for basis in (phi, torch.stack(psi)):
        for part in (basis[:, :nodes], basis[:, nodes:]):
            entries = math.sqrt(2) * (part * quarter) @ fine.T
            filters.append(torch.where(entries.abs() < 1e-8, 0.0, entries))
    return filters


class SparseKernelFourier(nn.Module):
    def __init__(self, channels, alpha):
        super().__init__()
        self.alpha = alpha
        shape, sigma = (channels, channels, alpha, alpha), math.sqrt(2 / (2 * channels * alpha * alpha))
        self.weights1 = nn.Parameter(sigma * torch.randn(shape, dtype=torch.cfloat))
        self.weights2 = nn.Parameter(sigma * torch.randn(shape, dtype=torch.cfloat))
        self.Lo = nn.Linear(channels, channels)

    def forward(self, x):
        batch, rows, columns, copies, filters = x.shape
        spectrum = torch.fft.rfft2(x.view(batch, rows, columns, -1).permute(0, 3, 1, 2))
        first, second = min(self.alpha, rows // 2 + 1), min(self.alpha, columns // 2 + 1)
        kept = torch.zeros(batch, copies * filters, rows, columns // 2 + 1, dtype=torch.cfloat, device=x.device)
        kept[:, :, :first, :second] = mix_modes(
            spectrum[:, :, :first, :second], self.weights1[:, :, :first, :second])
        kept[:, :, -first:, :second] = mix_modes(
            spectrum[:, :, -first:, :second], self.weights2[:, :, :first, :second])
        y = functional.relu(torch.fft.irfft2(kept, s=(rows, columns))).permute(0, 2, 3, 1)
        return self.Lo(y).reshape(x.shape)


class SparseKernel(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(channels, channels, 3, 1, 1), nn.ReLU(inplace=True))
        self.Lo = nn.Linear(channels, channels)

    def forward(self, x):
        y = self.conv(x.view(*x.shape[:3], -1).permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        return self.Lo(y).reshape(x.shape)


class Multiwavelet(nn.Module):
    """Decomposition to one cell, kernels on every level (shared), reconstruction; x [batch, S, S, copies, k^2]."""

    def __init__(self, order, alpha, copies):
        super().__init__()
        channels = copies * order**2
        self.A, self.B, self.C = SparseKernelFourier(channels, alpha), SparseKernel(channels), SparseKernel(channels)
        self.T0 = nn.Linear(order**2, order**2)
        H0, H1, G0, G1 = multiwavelet_filters(order)
        pairs = {"ee": ((H0, H0), (G0, G0)), "eo": ((H0, H1), (G0, G1)),
                 "oe": ((H1, H0), (G1, G0)), "oo": ((H1, H1), (G1, G1))}
        smooth, detail = ([torch.kron(*pair[which]) for pair in pairs.values()] for which in (0, 1))
        self.register_buffer("ec_s", torch.cat([product.T for product in smooth]).float())
        self.register_buffer("ec_d", torch.cat([product.T for product in detail]).float())
        for name, products in zip(pairs, zip(smooth, detail)):
            self.register_buffer(f"rc_{name}", torch.cat(products).float())

    def decompose(self, x):
        quarters = [x[:, ::2, ::2], x[:, ::2, 1::2], x[:, 1::2, ::2], x[:, 1::2, 1::2]]
        x = torch.cat(quarters, -1)
        return torch.matmul(x, self.ec_d), torch.matmul(x, self.ec_s)

    def reconstruct(self, x):
        batch, rows, columns, copies, twice = x.shape
        y = torch.zeros(batch, 2 * rows, 2 * columns, copies, twice // 2, device=x.device)
        y[:, ::2, ::2] = torch.matmul(x, self.rc_ee)
        y[:, ::2, 1::2] = torch.matmul(x, self.rc_eo)
        y[:, 1::2, ::2] = torch.matmul(x, self.rc_oe)
        y[:, 1::2, 1::2] = torch.matmul(x, self.rc_oo)
        return y

    def forward(self, x):
        levels, kept = int(math.log2(x.shape[1])), []
        for _ in range(levels):
            detail, x = self.decompose(x)
            kept.append((self.A(detail) + self.B(x), self.C(detail)))
        x = self.T0(x)
        for detail, smooth in reversed(kept):
            x = self.reconstruct(torch.cat([x + smooth, detail], -1))
        return x


class Mwt(GridModel):
    def __init__(self, settings):
        order, copies = settings.mwt_k, getattr(settings, "c", 1)
        super().__init__(settings, head=settings.n_hidden, lifted=copies * order**2, side=128)
        self.copies, alpha = copies, getattr(settings, "alpha", 2)
        layers = (Multiwavelet(order, alpha, copies) for _ in range(settings.n_layers))
        self.spectral_layers = nn.ModuleList(layers)

    def padded_size(self, size):
        side = 2 ** math.ceil(math.log2(max(size)))
        return side, side

    def body(self, image):
        batch, _, rows, columns = image.shape
        x = image.permute(0, 2, 3, 1).contiguous().view(batch, rows, columns, self.copies, -1)
        for number, layer in enumerate(self.spectral_layers):
            x = layer(x)
            if number < len(self.spectral_layers) - 1:
                x = functional.gelu(x)
        return x.view(batch, rows, columns, -1).permute(0, 3, 1, 2).contiguous()


class BranchAndTrunk(nn.Module):
    """Geo-FNO's DeepONet: the branch ends linear, the trunk with ReLU, one scalar bias."""

    def __init__(self, branch, trunk, width, depth):
        super().__init__()
        self.depth, self.modus = depth, nn.ModuleDict()
        for layer in range(1, depth + 1):
            self.modus[f"BrLinM{layer}"] = nn.Linear(branch if layer == 1 else width, width)
        for layer in range(1, depth + 1):
            self.modus[f"TrLinM{layer}"] = nn.Linear(trunk if layer == 1 else width, width)
        self.params = nn.ParameterDict({"bias": nn.Parameter(torch.zeros(1))})

    def forward(self, branch, trunk):
        """[batch, sensors] and [batch, points, axes] -> [batch, points]"""
        for layer in range(1, self.depth):
            branch = functional.relu(self.modus[f"BrLinM{layer}"](branch))
        branch = self.modus[f"BrLinM{self.depth}"](branch)
        for layer in range(1, self.depth + 1):
            trunk = functional.relu(self.modus[f"TrLinM{layer}"](trunk))
        return torch.sum(branch.unsqueeze(1) * trunk, -1) + self.params["bias"]


class DeepOnet(nn.Module):
    """Branch: all values of a sample, or all its coordinates; trunk: the point, and the time. One net per output."""

    def __init__(self, settings):
        super().__init__()
        sensors = math.prod(settings.shapelist) * (settings.fun_dim or settings.space_dim)
        trunk = settings.space_dim + bool(settings.time_input)
        nets = (BranchAndTrunk(sensors, trunk, settings.n_hidden, settings.n_layers) for _ in range(settings.out_dim))
        self.nets = nn.ModuleList(nets)

    def forward(self, points, values=None, time=None):
        branch = (points if values is None else values).flatten(1)
        if time is not None:
            points = torch.cat([points, time.unsqueeze(1).expand(-1, points.shape[1], -1)], -1)
        return torch.stack([net(branch, points) for net in self.nets], -1)
