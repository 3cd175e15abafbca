"""U-Net, ResNet and the networks built on the U-Net's ladder: U-FNO, U-NO and LSM."""

import math

import torch
import torch.nn.functional as functional
from torch import nn

from .library import GridModel
from .spectral import Spectral2d


def norm_of(task):
    """Batch norm in steady problems, else instance norm without running statistics."""
    return nn.BatchNorm2d if task == "steady" else lambda channels: nn.InstanceNorm2d(channels, affine=True)


class DoubleConv(nn.Module):
    def __init__(self, inputs, outputs, middle=None, norm=nn.BatchNorm2d):
        super().__init__()
        middle = middle or outputs
        self.double_conv = nn.Sequential(
            nn.Conv2d(inputs, middle, 3, padding=1, bias=False), norm(middle), nn.ReLU(inplace=True),
            nn.Conv2d(middle, outputs, 3, padding=1, bias=False), norm(outputs), nn.ReLU(inplace=True))

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, inputs, outputs, norm):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(inputs, outputs, norm=norm))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, inputs, outputs, norm):
        super().__init__()
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.conv = DoubleConv(inputs, outputs, inputs // 2, norm)

    def forward(self, coarse, skip):
        return self.conv(torch.cat([skip, self.up(coarse)], 1))


class OutConv(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 1)

    def forward(self, x):
        return self.conv(x)


class Ladder(GridModel):
    """Four halvings and four doublings of the resolution, with skips."""

    def __init__(self, settings, head):
        super().__init__(settings, head)
        width, norm = settings.n_hidden, norm_of(settings.task)
        self.inc = DoubleConv(width, width, norm=norm)
        self.down1 = Down(width, 2 * width, norm)
        self.down2 = Down(2 * width, 4 * width, norm)
        self.down3 = Down(4 * width, 8 * width, norm)
        self.down4 = Down(8 * width, 8 * width, norm)
        self.up1 = Up(16 * width, 4 * width, norm)
        self.up2 = Up(8 * width, 2 * width, norm)
        self.up3 = Up(4 * width, width, norm)
        self.up4 = Up(2 * width, width, norm)
        self.outc = OutConv(width)


class UNet(Ladder):
    def __init__(self, settings):
        super().__init__(settings, head=settings.n_hidden)

    def body(self, image):
        x1 = self.inc(image)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x4 = self.down3(x3)
        x5 = self.down4(x4)
        x = self.up1(x5, x4)
        x = self.up2(x, x3)
        x = self.up3(x, x2)
        x = self.up4(x, x1)
        return self.outc(x)


class BasicBlock(nn.Module):
    def __init__(self, width, norm):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(width, width, 3, padding=1, bias=False), norm(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=1, bias=False), norm(width)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += x
        return self.relu(y)


class ResNet(GridModel):
    """Basic blocks of torchvision at constant width and resolution, without padding."""

    def __init__(self, settings):
        super().__init__(settings, head=settings.n_hidden)
        norm = norm_of(settings.task)
        self.blocks = nn.ModuleList(BasicBlock(settings.n_hidden, norm) for _ in range(settings.n_layers))

    def padded_size(self, size):
        return size

    def body(self, image):
        for block in self.blocks:
            image = block(image)
        return image


class UFno(GridModel):
    """Four Fourier layers, the last two with a U-Net beside. The U-Nets are whole models: their lifting and
    head exist and are never used."""

    def __init__(self, settings):
        super().__init__(settings, head=settings.n_hidden)
        width, modes = settings.n_hidden, settings.modes
        for layer in range(4):
            setattr(self, f"conv{layer}", Spectral2d(width, width, modes, modes))
            setattr(self, f"w{layer}", nn.Conv2d(width, width, 1))
        self.u_net2, self.u_net3 = UNet(settings), UNet(settings)

    def body(self, image):
        image = functional.gelu(self.conv0(image) + self.w0(image))
        image = functional.gelu(self.conv1(image) + self.w1(image))
        image = functional.gelu(self.conv2(image) + self.w2(image) + self.u_net2.body(image))
        return self.conv3(image) + self.w3(image) + self.u_net3.body(image)


class Uno(Ladder):
    """The ladder with a Fourier layer after every stage. `w` is a double convolution through one channel, always
    with batch norm, as in the library."""

    def __init__(self, settings):
        super().__init__(settings, head=2 * settings.n_hidden)
        width, smaller = settings.n_hidden, min(self.padded)
        down, up = (1, 2, 4, 8, 8), (1, 1, 2, 4, 8)
        for level in range(1, 6):
            modes = max(1, min(settings.modes, smaller // 2**level))
            for way, factors in (("down", down), ("up", up)):
                channels = factors[level - 1] * width
                setattr(self, f"process{level}_{way}", Spectral2d(channels, channels, modes, modes))
                setattr(self, f"w{level}_{way}", DoubleConv(channels, channels, 1))

    def fourier(self, stage, x):
        return functional.gelu(getattr(self, f"process{stage}")(x) + getattr(self, f"w{stage}")(x))

    def body(self, image):
        x1 = self.fourier("1_down", self.inc(image))
        x2 = self.fourier("2_down", self.down1(x1))
        x3 = self.fourier("3_down", self.down2(x2))
        x4 = self.fourier("4_down", self.down3(x3))
        x5 = self.fourier("5_down", self.down4(x4))
        x = self.fourier("5_up", x5)
        x = self.fourier("4_up", self.up1(x, x4))
        x = self.fourier("3_up", self.up2(x, x3))
        x = self.fourier("2_up", self.up3(x, x2))
        x = self.fourier("1_up", self.up4(x, x1))
        return self.outc(x)


class NeuralSpectralBlock(nn.Module):
    """Attention of latent tokens to the points of a patch, sines and cosines of the tokens, attention back."""

    def __init__(self, width, heads, tokens, basis, patch):
        super().__init__()
        self.heads, self.patch = heads, patch
        self.latent = nn.Parameter(torch.rand(heads, tokens, width // heads) / width)
        self.weights = nn.Parameter(torch.rand(width, 2 * basis) / width)
        self.encoder_attn = nn.Conv2d(width, 2 * width, 1)
        self.decoder_attn = nn.Conv2d(width, width, 1)
        frequencies = math.pi * torch.arange(basis, dtype=torch.float32) / basis
        self.register_buffer("frequencies", frequencies, persistent=False)

    def encode(self, x):
        """[patches, channels, p1, p2] -> [patches, heads, tokens, channels of a head]; keys and values interleave."""
        patches, channels = x.shape[:2]
        x = self.encoder_attn(x).view(patches, 2 * channels, -1).permute(0, 2, 1).contiguous()
        x = x.view(patches, -1, self.heads, channels // self.heads, 2).permute(4, 0, 2, 1, 3).contiguous()
        latent = self.latent[None].repeat(patches, 1, 1, 1)
        scores = torch.softmax(torch.einsum("bhlc,bhsc->bhls", latent, x[0]), -1)
        return torch.einsum("bhls,bhsc->bhlc", scores, x[1]) + latent

    def transition(self, latent):
        patches, heads, tokens, channels = latent.shape
        z = latent.permute(0, 1, 3, 2).reshape(patches, heads * channels, tokens)
        angles = self.frequencies * z.unsqueeze(-1)
        basis = torch.cat([torch.sin(angles), torch.cos(angles)], -1)
        z = torch.einsum("bilm,im->bil", basis, self.weights) + z
        return z.view(patches, heads, channels, tokens).permute(0, 1, 3, 2).contiguous()

    def decode(self, x, latent):
        patches, channels = x.shape[:2]
        query = self.decoder_attn(x).view(patches, self.heads, channels // self.heads, -1).permute(0, 1, 3, 2)
        scores = torch.softmax(torch.einsum("bhlc,bhsc->bhls", query.contiguous(), latent), -1)
        y = torch.einsum("bhls,bhsc->bhlc", scores, latent)
        return y.permute(0, 1, 3, 2).reshape(x.shape) + x

    def forward(self, image):
        (batch, channels, rows, columns), (p1, p2) = image.shape, self.patch
        x = image.view(batch, channels, rows // p1, p1, columns // p2, p2).permute(0, 2, 4, 1, 3, 5).contiguous()
        x = x.view(-1, channels, p1, p2)
        x = self.decode(x, self.transition(self.encode(x)))
        x = x.view(batch, rows // p1, columns // p2, channels, p1, p2).permute(0, 3, 1, 4, 2, 5).contiguous()
        return x.view(batch, channels, rows, columns)


class Lsm(Ladder):
    """The ladder with a latent spectral block on every skip and at the bottom."""

    def __init__(self, settings):
        super().__init__(settings, head=2 * settings.n_hidden)
        tokens, basis = getattr(settings, "num_token", 4), getattr(settings, "num_basis", 12)
        patch = tuple(n // 16 for n in self.padded)
        for level, factor in enumerate((1, 2, 4, 8, 8), 1):
            block = NeuralSpectralBlock(factor * settings.n_hidden, settings.n_heads, tokens, basis, patch)
            setattr(self, f"process{level}", block)

    def body(self, image):
        x1 = self.inc(image)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x4 = self.down3(x3)
        x5 = self.down4(x4)
        x = self.up1(self.process5(x5), self.process4(x4))
        x = self.up2(x, self.process3(x3))
        x = self.up3(x, self.process2(x2))
        x = self.up4(x, self.process1(x1))
        return self.outc(x)
